"""Every setting of the gateway: its name, type, default and meaning.

The docstring under a setting is its documentation: ``etc/gateway.toml`` and ``docs/configuration.md`` repeat it, and a
test compares them. Unknown keys are errors, values are never converted from another type, and settings are immutable.
"""

import socket
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, SecretStr, model_validator

from gateway.config.archive import ArchiveSettings, Streams, Traces
from gateway.config.audit import AuditSettings
from gateway.config.cluster import Cluster
from gateway.config.depths import DepthSettings
from gateway.config.kinds import (
    BindAddress,
    DirectoryPath,
    ListenerPort,
    Live,
    OptionalPath,
    Password,
    Paths,
    Size,
    Token,
    Watermark,
)
from gateway.config.limits import LimitSettings
from gateway.config.login import LoginSettings
from gateway.config.management import Management, ManagementTls
from gateway.config.mqtt import Mqtt, Mqtts, WebMqtt, WebMqtts
from gateway.config.otlp import Otlp
from gateway.config.pipeline import Pipeline
from gateway.config.plugins import PluginRules
from gateway.config.prometheus import Prometheus, PrometheusTls
from gateway.config.recording import RecordingSettings
from gateway.config.section import Section
from gateway.config.statsd import Statsd
from gateway.config.stomp import Stomp, Stomps, WebStomp, WebStomps
from gateway.config.workbench import WorkbenchSettings
from gateway.version import RABBITMQ_VERSION

#: Default ports of the TLS listeners if a certificate is configured.
TLS_PORTS: Final = {"amqps": 5671, "mqtts": 8883, "stomps": 61614, "management_tls": 15671, "prometheus_tls": 15691}
MAX_MESSAGE_SIZE: Final = 512 * 2**20


class Amqp(Section):
    """AMQP 0-9-1."""

    port: ListenerPort = 5672
    """Port of the listener without TLS."""

    proxy_protocol: bool = False
    """Whether a proxy sends a PROXY header with the client's address on each connection, with and without TLS."""

    heartbeat_s: Live[Annotated[int, Field(ge=0, le=65535)]] = 60
    """Heartbeat interval proposed to clients, in seconds; 0 proposes none. The lower proposal is used."""

    frame_max: Live[Annotated[int, Field(ge=4096, le=2**27)]] = 131072
    """Maximum frame size that a client may negotiate, in bytes."""

    channel_max: Live[Annotated[int, Field(ge=1, le=65535)]] = 2047
    """Maximum number of channels that a client may negotiate for one connection."""

    max_message_size: Live[Annotated[Size, Field(ge=1, le=MAX_MESSAGE_SIZE)]] = 16 * 2**20
    """Maximum size of a message body; at most 512MiB."""

    max_held_size: Annotated[Size, Field(ge=2**20, le=2**40)] = 128 * 2**20
    """Memory of one connection for incomplete bodies and open transactions; one message always fits."""

    max_unsettled_size: Annotated[Size, Field(ge=2**20, le=2**40)] = 256 * 2**20
    """Approximate size of the unacknowledged messages of one connection at which delivery to it pauses."""

    login_timeout_s: Live[Annotated[int, Field(ge=1, le=3600)]] = 10
    """Time from opening a connection until its virtual host is open, in seconds."""

    product: Token = "RabbitMQ"
    """Product name sent to AMQP and STOMP clients; kombu and Celery share prefetch limits only with ``RabbitMQ``."""

    product_version: Token = RABBITMQ_VERSION
    """Version of that product, from which clients infer the broker's features."""


class Amqps(Section):
    """AMQP 0-9-1 over TLS."""

    port: ListenerPort = None
    """Port of the TLS listener; the default is 5671 if ``tls.certificate`` is set."""


class TlsSettings(Section):
    """The certificates of the TLS listeners."""

    certificate: Live[OptionalPath] = None
    """File of the server's certificate and its chain, in PEM format."""

    key: Live[OptionalPath] = None
    """File of the certificate's private key, in PEM format."""

    further_certificates: Live[Paths] = Field(default_factory=list)
    """Files of further certificates, each with its chain and private key: a client that names a host gets its own."""

    ca: Live[OptionalPath] = None
    """File of the CA certificates that must have signed client certificates, in PEM format."""

    verify: Live[Literal["off", "optional", "required"]] = "off"
    """Whether clients are asked for a certificate, and refused without one if ``required``. Needs ``tls.ca``."""

    min_version: Live[Literal["1.2", "1.3"]] = "1.2"
    """Minimum TLS version."""

    @property
    def certificates(self) -> tuple[Path, ...]:
        """All files with certificates of the server."""
        return () if self.certificate is None else (self.certificate, *map(Path, self.further_certificates))


class Storage(Section):
    """The store of messages and definitions."""

    engine: Literal["lmdb", "memory"] = "lmdb"
    """``lmdb`` stores them in the data directory, ``memory`` loses everything when the broker stops."""

    compact_at: Size = 2**30
    """Free space in the store's file, and at least half of the file, that starts a compaction; 0 disables it."""


class QueueDefaults(Section):
    """Defaults and limits of all queues."""

    resident_messages: Annotated[int, Field(ge=64, le=10_000_000)] = 2048
    """Messages of one queue whose contents always stay in memory; further ones need room in ``reserve``."""

    reserve: Size = 32 * 2**20
    """Memory shared by all queues for further message contents; contents that do not fit stay on disk. 0 is none."""

    default_queue_type: Literal["classic", "quorum", "stream"] = "classic"
    """Type of a queue declared without a type, unless its virtual host has a default of its own."""

    consumer_timeout_ms: Live[Annotated[int, Field(ge=0, le=315_360_000_000)]] = 1_800_000
    """Time a delivery may stay unacknowledged before its channel is closed, in milliseconds; 0 is no limit."""


class DefaultPermissions(Section):
    """Permissions of the default user in the default virtual host, as patterns of names."""

    configure: str = ".*"
    """Names of entities it may declare and delete."""

    write: str = ".*"
    """Names of entities it may publish to and bind as destination."""

    read: str = ".*"
    """Names of entities it may consume from and bind as source."""


class LogSettings(Section):
    """The broker's log."""

    level: Live[Literal["debug", "info", "warning", "error"]] = "info"
    """Lowest level that is written."""

    format: Live[Literal["text", "json"]] = "text"
    """``text`` for people, or ``json`` for programs, one object a line."""

    file: Live[OptionalPath] = None
    """File of the log; ``""`` is the standard error stream."""

    kept_files: Live[Annotated[int, Field(ge=1, le=1000)]] = 5
    """Number of earlier files that ``gatewayctl rotate_logs`` keeps, as ``.1``, ``.2`` and so on."""

    lines_per_s: Live[Annotated[int, Field(ge=0, le=1_000_000)]] = 20
    """Maximum rate of lines of one kind, with a burst of ten times as many; the rest is counted. 0 is no limit."""


class DeprecatedFeatures(Section):
    """Features that RabbitMQ has deprecated."""

    permit_transient_nonexcl_queues: bool = True
    """Whether a queue may be neither durable nor exclusive."""


class VhostSettings(Section):
    """The settings of one virtual host."""

    tracing: bool = False
    """Whether its messages are copied to the exchange ``amq.rabbitmq.trace`` from the start."""

    trace_table: bool = False
    """Whether the events of its messages are recorded in the table ``trace`` from the start."""

    mqtt_mapping: Literal["reversible", "lossy"] = "reversible"
    """Mapping of MQTT topics to routing keys; ``lossy`` is RabbitMQ's mapping, in which ``.`` and ``/`` collide."""

    plugins: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Enabled plugins, each with its own settings: ``[vhosts."/".plugins.NAME]``."""


class Settings(Section):
    """All settings."""

    node_name: str = "gateway@{hostname}"
    """Name of this node, or ``node``, in logs and listings; ``{hostname}`` stands for the machine's name."""

    bind: BindAddress = "*"
    """Address of all listeners; ``*`` is every interface, IPv6 and IPv4."""

    data: DirectoryPath = Path("data")
    """Directory of the store; created if it is missing."""

    plugins_dir: OptionalPath = None
    """Directory whose Python files are loaded as plugins."""

    load_definitions: OptionalPath = None
    """File of definitions in RabbitMQ's export format, applied at every start; in a cluster, at that of a leader."""

    memory_high_watermark: Live[Watermark] = 0.6
    """Memory use of the broker above which publishers are blocked."""

    disk_free_limit: Live[Size] = 50 * 10**6
    """Free disk space at the data directory below which publishers are blocked."""

    default_user: str = "guest"
    """User created in an empty store; ``""`` creates none."""

    default_pass: Password = SecretStr("guest")
    """Password of that user."""

    default_user_tags: list[str] = Field(default_factory=lambda: ["administrator"])
    """Tags of that user."""

    default_vhost: str = "/"
    """Virtual host created in an empty store; that user has access to it."""

    loopback_users: list[str] = Field(default_factory=lambda: ["guest"])
    """Users that may connect only from this machine."""

    default_permissions: DefaultPermissions = DefaultPermissions()
    amqp: Amqp = Amqp()
    amqps: Amqps = Amqps()
    mqtt: Mqtt = Mqtt()
    mqtts: Mqtts = Mqtts()
    web_mqtt: WebMqtt = WebMqtt()
    web_mqtts: WebMqtts = WebMqtts()
    stomp: Stomp = Stomp()
    stomps: Stomps = Stomps()
    web_stomp: WebStomp = WebStomp()
    web_stomps: WebStomps = WebStomps()
    management: Management = Management()
    management_tls: ManagementTls = ManagementTls()
    prometheus: Prometheus = Prometheus()
    prometheus_tls: PrometheusTls = PrometheusTls()
    statsd: Statsd = Statsd()
    otlp: Otlp = Otlp()
    login: LoginSettings = LoginSettings()
    limits: LimitSettings = LimitSettings()
    tls: TlsSettings = TlsSettings()
    storage: Storage = Storage()
    queues: QueueDefaults = QueueDefaults()
    streams: Streams = Streams()
    archive: ArchiveSettings = ArchiveSettings()
    traces: Traces = Traces()
    depths: DepthSettings = DepthSettings()
    audit: AuditSettings = AuditSettings()
    workbench: WorkbenchSettings = WorkbenchSettings()
    recording: RecordingSettings = RecordingSettings()
    pipeline: Pipeline = Pipeline()
    cluster: Cluster = Cluster()
    plugins: PluginRules = PluginRules()
    log: LogSettings = LogSettings()
    deprecated_features: DeprecatedFeatures = DeprecatedFeatures()
    vhosts: dict[str, VhostSettings] = Field(default_factory=dict)
    """Settings by virtual host: tracing, the mapping of MQTT topics, and plugins."""

    @model_validator(mode="before")
    @classmethod
    def _take_the_short_name(cls, table: Any) -> Any:
        """Take ``node`` for ``node_name``."""
        match table:
            case {"node": name, **others} if "node_name" not in others:
                return others | {"node_name": name}
        return table

    @model_validator(mode="before")
    @classmethod
    def _listen_with_tls_when_there_is_a_certificate(cls, table: Any) -> Any:
        """Give the TLS listeners their default ports if only the certificate is set."""
        match table:
            case {"tls": {"certificate": certificate}, **others} if certificate:
                sections = {name: (others.get(name, {}), port) for name, port in TLS_PORTS.items()}
                return table | {
                    name: {"port": port} | section
                    for name, (section, port) in sections.items()
                    if isinstance(section, dict)
                }
        return table

    @property
    def node(self) -> str:
        """Name of this node with the machine's name filled in."""
        return self.node_name.replace("{hostname}", socket.gethostname())
