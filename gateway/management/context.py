"""The context of the management API: the broker and the services its resources use."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from twisted.internet.task import Cooperator

from gateway.access import Access, PasswordVerifier
from gateway.kernel.broker.broker import Broker
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.management.cells.cells import Cells
from gateway.management.cluster_control import ClusterControl
from gateway.management.cluster_state import ClusterState
from gateway.management.depths.depth_files import DepthFiles
from gateway.management.http.cross_origin import CrossOriginPolicy, cross_origin_policy
from gateway.management.http.login_sessions import LoginSessions
from gateway.management.node_control import NodeControl
from gateway.management.pipeline.context import PipelineContext
from gateway.management.pipeline.vouched_range import LogPlace
from gateway.management.plugin_control import PluginControl
from gateway.management.statistics.sampler import Statistics
from gateway.management.trace_files.trace_files import TraceFiles
from gateway.management.web.limits import HttpLimits
from gateway.plugins.services.offering import VhostServices


class TopicNames(Protocol):
    """Conversion between MQTT topics and routing keys."""

    def topic(self, routing_key: str) -> str:
        """Return the topic of a routing key."""
        ...

    def routing_key(self, topic: str) -> str:
        """Return the routing key of a topic."""
        ...


class Bridges(Protocol):
    """The shovels and federation links of the node."""

    def local_vhosts(self, record: ParameterRecord) -> Sequence[str]:
        """Return the virtual hosts of this broker that a valid parameter connects to without a user's password."""
        ...

    def shovel_statuses(self) -> Iterable[Mapping[str, Any]]:
        """Return the status of each shovel."""
        ...

    def federation_statuses(self) -> Iterable[Mapping[str, Any]]:
        """Return the status of each federation link."""
        ...

    def restart_federation_link(self, vhost: str, id: str) -> bool:
        """Connect a federation link again; return whether it exists."""
        ...

    def restart_shovel(self, vhost: str, name: str) -> bool:
        """Connect a shovel again; return whether it exists."""
        ...

    def delete_shovel(self, vhost: str, name: str) -> bool:
        """Remove a shovel with its parameter; return whether it exists."""
        ...


class NoBridges:
    """A node without shovels (null object)."""

    def local_vhosts(self, record: ParameterRecord) -> Sequence[str]:
        """Return none."""
        return ()

    def shovel_statuses(self) -> Iterable[Mapping[str, Any]]:
        """Return none."""
        return ()

    def federation_statuses(self) -> Iterable[Mapping[str, Any]]:
        """Return none."""
        return ()

    def restart_federation_link(self, vhost: str, id: str) -> bool:
        """Return that it does not exist."""
        return False

    def restart_shovel(self, vhost: str, name: str) -> bool:
        """Return that it does not exist."""
        return False

    def delete_shovel(self, vhost: str, name: str) -> bool:
        """Return that it does not exist."""
        return False


@dataclass(frozen=True, slots=True)
class PublishAddress:
    """The address of a publish of some protocol: exchange and routing key.

    ``variables`` are those of its user's topic permissions. ``declares_queue`` is the queue that the publish declares
    if it does not exist, and ``refusal`` the reason why no client may publish there; both are empty for none.
    """

    exchange: str
    routing_key: str
    variables: Mapping[str, str] = field(default_factory=dict)
    declares_queue: str = ""
    refusal: str = ""


class PublishAddresses(Protocol):
    """Conversion of the addresses of MQTT and STOMP to those of the kernel."""

    def of_topic(self, vhost: str, topic: str, client_id: str, user: str) -> PublishAddress:
        """Return the address of an MQTT topic name. :raises PreconditionFailed: if it is invalid."""
        ...

    def of_destination(self, destination: str) -> PublishAddress:
        """Return the address of a STOMP destination. :raises PreconditionFailed: if it is invalid."""
        ...


@dataclass(slots=True)
class ApiContext:
    """The broker and the services that the API's resources use.

    ``login`` authenticates users, ``login_sessions`` keeps those of the web UI, ``access_of`` returns the access of one
    virtual host, ``topics_of`` its conversion of topics, and ``publish_addresses`` that of topics and destinations of
    publishes. ``addresses`` maps listener names to (host, port). ``memory_limit`` and ``disk_free_limit`` are in bytes.
    ``touch`` schedules the end of the turn. ``started_at_ms`` is wall time, and ``slices`` runs long work, of all
    listeners. ``http`` holds the limits of clients, ``cross_origin_policy`` refuses requests of foreign web pages. A
    reload replaces limits and certificates.
    ``passwords`` hashes passwords; ``login_counts`` returns counts of delayed logins, ``collections`` statistics of the
    garbage collector, ``turns`` durations of event loop turns, ``store_info`` sizes of the store's file.
    ``compact_store`` starts a compaction, and ``inert_plugins`` returns the plugins of a virtual host that failed.
    ``plugins`` lists and changes plugins, and ``control`` the node; ``None`` if they cannot be changed.
    ``shows_secrets`` is whether parameters and definitions are answered with the passwords in their URIs.
    ``services_of`` returns what the plugins of an existing virtual host offer to operators. ``cluster`` returns the
    state of the cluster that the node leads, and ``cluster_control`` changes it; ``None`` if the node runs alone.
    ``depth_files`` has the depths of queues of past moments, and ``records_depths`` is whether more are recorded.
    ``cells`` are those of a cluster that has several. ``log_place`` is the cell that the node leads, with its epoch.
    """

    broker: Broker
    login: Access
    access_of: Callable[[str], Access]
    statistics: Statistics
    topics_of: Callable[[str], TopicNames]
    publish_addresses: PublishAddresses
    pipeline: PipelineContext
    login_sessions: LoginSessions
    trace_files: TraceFiles
    depth_files: DepthFiles
    slices: Cooperator
    passwords: PasswordVerifier = field(default_factory=PasswordVerifier)
    login_counts: Callable[[], Mapping[str, int]] = dict
    touch: Callable[[], None] = lambda: None
    addresses: Callable[[], Mapping[str, tuple[str, int]]] = dict
    memory_limit: int = 0
    disk_free_limit: int = 0
    data: Path = Path()
    started_at_ms: int = 0
    certificates: Sequence[Path] = ()
    max_message_size: int = 16 * 2**20
    shows_secrets: bool = False
    http: HttpLimits = field(default_factory=HttpLimits)
    cross_origin_policy: CrossOriginPolicy = field(default_factory=lambda: cross_origin_policy((), (), 0))
    reactor: Any = None  # Twisted's interfaces are not types
    collections: Callable[[], Mapping[str, Any]] = dict
    turns: Callable[[], Mapping[str, float | int | str]] = dict
    store_info: Callable[[], Mapping[str, Any]] = dict
    compact_store: Callable[[], bool] = lambda: False
    records_depths: bool = False
    inert_plugins: Callable[[str], Mapping[str, str]] = lambda vhost: {}
    plugins: PluginControl | None = None
    control: NodeControl | None = None
    services_of: Callable[[str], VhostServices] = lambda vhost: VhostServices()
    bridges: Bridges = field(default_factory=NoBridges)
    cluster: Callable[[], ClusterState | None] = lambda: None
    cluster_control: ClusterControl | None = None
    cells: Cells | None = None
    log_place: LogPlace | None = None
