"""Every setting of the gateway: its name, kind, default and meaning.

The docstring under a setting is its documentation: ``etc/gateway.toml`` and ``docs/configuration.md`` repeat it, and a
test compares them. Unknown keys are errors, values are never converted from another type, and settings never change
once loaded.
"""

import socket
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, SecretStr, model_validator

from gateway.config.archive import ArchiveSettings, Streams
from gateway.config.kinds import (
    BindAddress,
    DirectoryPath,
    ListenerPort,
    OptionalPath,
    Password,
    Size,
    Token,
    Watermark,
)
from gateway.config.limits import LimitSettings
from gateway.config.login import LoginSettings
from gateway.config.management import Management
from gateway.config.mqtt import Mqtt, Mqtts, WebMqtt, WebMqtts
from gateway.config.pipeline import Pipeline
from gateway.config.section import Section
from gateway.config.stomp import Stomp, Stomps, WebStomp, WebStomps
from gateway.version import RABBITMQ_VERSION

#: Where a listener with TLS is once there is a certificate.
TLS_PORTS: Final = {"amqps": 5671, "mqtts": 8883, "stomps": 61614}
MAX_MESSAGE_SIZE: Final = 512 * 2**20


class Amqp(Section):
    """AMQP 0-9-1."""

    port: ListenerPort = 5672
    """Where plain connections are taken."""

    proxy_protocol: bool = False
    """Whether connections, with and without TLS, come by way of a proxy that says in a PROXY header whose they are."""

    heartbeat_s: Annotated[int, Field(ge=0, le=65535)] = 60
    """The heartbeat interval proposed to clients, in seconds; 0 proposes none. The lower proposal wins."""

    frame_max: Annotated[int, Field(ge=4096, le=2**27)] = 131072
    """The largest frame a client may negotiate, in bytes."""

    channel_max: Annotated[int, Field(ge=1, le=65535)] = 2047
    """How many channels a client may negotiate for one connection."""

    max_message_size: Annotated[Size, Field(ge=1, le=MAX_MESSAGE_SIZE)] = 16 * 2**20
    """The largest message body accepted; at most 512MiB."""

    max_held_size: Annotated[Size, Field(ge=2**20, le=2**40)] = 128 * 2**20
    """What one connection may hold of bodies on their way in and of open transactions; one message always fits."""

    max_unsettled_size: Annotated[Size, Field(ge=2**20, le=2**40)] = 256 * 2**20
    """What one connection may hold unacknowledged, about; beyond it nothing more is delivered until it acknowledges."""

    login_timeout_s: Annotated[int, Field(ge=1, le=3600)] = 10
    """How long a new connection may take, in seconds, until its virtual host is open."""

    product: Token = "RabbitMQ"
    """The product told to clients of AMQP and STOMP; kombu and Celery share prefetch limits with ``RabbitMQ`` only."""

    product_version: Token = RABBITMQ_VERSION
    """The version of that product, from which clients conclude what the broker can do."""


class Amqps(Section):
    """AMQP 0-9-1 over TLS."""

    port: ListenerPort = None
    """Where TLS connections are taken; 5671 when it is not set but ``tls.certificate`` is."""


class TlsSettings(Section):
    """The certificates of the TLS listeners."""

    certificate: OptionalPath = None
    """The server's certificate and its chain, a PEM file."""

    key: OptionalPath = None
    """The private key of the certificate, a PEM file."""

    ca: OptionalPath = None
    """The certificates that client certificates must be signed by, a PEM file."""

    verify: Literal["off", "optional", "required"] = "off"
    """Whether clients are asked for a certificate, and whether those without one are turned away. Needs ``tls.ca``."""

    min_version: Literal["1.2", "1.3"] = "1.2"
    """The oldest TLS version accepted."""


class Storage(Section):
    """Where messages and definitions are kept."""

    engine: Literal["lmdb", "memory"] = "lmdb"
    """``lmdb`` keeps them in the data directory, ``memory`` forgets everything at the end."""

    compact_at: Size = 2**30
    """When so much of the file is free, and half of it, it is compacted while the broker runs; 0 is never."""


class QueueDefaults(Section):
    """What holds for all queues."""

    resident_messages: Annotated[int, Field(ge=64, le=10_000_000)] = 2048
    """How many messages of one queue keep their contents in memory in any case; others need room in ``reserve``."""

    reserve: Size = 32 * 2**20
    """Memory that all queues share for further messages; what has no room has its contents on disk only. 0 is none."""

    default_queue_type: Literal["classic", "quorum", "stream"] = "classic"
    """What a queue becomes that is declared without a type, where its virtual host has no default of its own."""

    consumer_timeout_ms: Annotated[int, Field(ge=0, le=315_360_000_000)] = 1_800_000
    """How long a delivery may stay unsettled until its channel is closed, in milliseconds; 0 is for ever."""


class DefaultPermissions(Section):
    """The permissions of the default user in the default virtual host, as patterns of names."""

    configure: str = ".*"
    """What it may declare and delete."""

    write: str = ".*"
    """What it may publish and bind to."""

    read: str = ".*"
    """What it may consume and bind from."""


class LogSettings(Section):
    """The log."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe entries written."""

    format: Literal["text", "json"] = "text"
    """``text`` is for people, ``json`` is one object a line for programs."""

    file: OptionalPath = None
    """Where the log goes; none is the standard error stream."""

    lines_per_s: Annotated[int, Field(ge=0, le=1_000_000)] = 20
    """How many lines of one kind a second, after ten times as many at once; the rest is counted. 0 is no limit."""


class DeprecatedFeatures(Section):
    """Old features that RabbitMQ is about to drop."""

    permit_transient_nonexcl_queues: bool = True
    """Whether queues may be neither durable nor exclusive."""


class VhostSettings(Section):
    """The settings of one virtual host."""

    tracing: bool = False
    """Whether its messages are copied to the exchange ``amq.rabbitmq.trace``, from the start."""

    trace_table: bool = False
    """Whether what happens to its messages is written into the table ``trace``, from the start."""

    mqtt_mapping: Literal["reversible", "lossy"] = "reversible"
    """How a topic of MQTT becomes a routing key; ``lossy`` is RabbitMQ's way, which confuses ``.`` with ``/``."""

    plugins: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """The plugins it enables, each with its own settings: ``[vhosts."/".plugins.NAME]``."""


class Settings(Section):
    """All settings."""

    node_name: str = "gateway@{hostname}"
    """The name of this node in logs and listings; ``{hostname}`` stands for the machine's name."""

    bind: BindAddress = "*"
    """The address all listeners use; ``*`` is every interface, IPv6 and IPv4."""

    data: DirectoryPath = Path("data")
    """The directory of the store; created when it is missing."""

    plugins_dir: OptionalPath = None
    """A directory whose Python files are loaded as plugins."""

    load_definitions: OptionalPath = None
    """A file of definitions, as RabbitMQ exports them, applied at every start."""

    memory_high_watermark: Watermark = 0.6
    """Publishers are blocked while the broker's memory is above this."""

    disk_free_limit: Size = 50 * 10**6
    """Publishers are blocked while less than this is free where the data directory is."""

    default_user: str = "guest"
    """The user created in an empty store; ``""`` creates none."""

    default_pass: Password = SecretStr("guest")
    """The password of that user."""

    default_user_tags: list[str] = Field(default_factory=lambda: ["administrator"])
    """The tags of that user."""

    default_vhost: str = "/"
    """The virtual host created in an empty store, open to that user."""

    loopback_users: list[str] = Field(default_factory=lambda: ["guest"])
    """Users that may only connect from this machine."""

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
    login: LoginSettings = LoginSettings()
    limits: LimitSettings = LimitSettings()
    tls: TlsSettings = TlsSettings()
    storage: Storage = Storage()
    queues: QueueDefaults = QueueDefaults()
    streams: Streams = Streams()
    archive: ArchiveSettings = ArchiveSettings()
    pipeline: Pipeline = Pipeline()
    log: LogSettings = LogSettings()
    deprecated_features: DeprecatedFeatures = DeprecatedFeatures()
    vhosts: dict[str, VhostSettings] = Field(default_factory=dict)
    """Settings by virtual host: whether it is traced, how it reads MQTT's topics, and the plugins it enables."""

    @model_validator(mode="before")
    @classmethod
    def _listen_with_tls_when_there_is_a_certificate(cls, table: Any) -> Any:
        """Give the listeners with TLS their usual ports when only the certificate was set."""
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
        """The name of this node with the machine's name filled in."""
        return self.node_name.replace("{hostname}", socket.gethostname())
