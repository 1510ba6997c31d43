"""``gateway run``: installs the reactor, starts a node, prints its listeners, and stops it on a signal."""

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol

from gateway.config import Configured
from gateway.kernel.errors import GatewayError, StorageError
from gateway.logs import StructuredLog
from gateway.logs.setup import start_logging
from gateway.logs.twisted import bridge_twisted
from gateway.net.allocator import tune_allocator
from gateway.net.descriptors import raise_descriptor_limit
from gateway.net.reactor import install
from gateway.node.announcement import announcement
from gateway.node.audit import record_reload
from gateway.node.control.live_settings import ReloadResult, log_refused_reload, log_reload
from gateway.node.control_lines import ControlLines
from gateway.node.garbage_collector import GarbageCollector
from gateway.node.signals import Signals
from gateway.node.systemd import tell_systemd

if TYPE_CHECKING:
    from gateway.node.host import NodeHost
    from gateway.node.node import Node

_log: Final = StructuredLog("app")

#: Interval at which Python switches threads, in seconds. With the default of 5 ms a commit waits that long for a busy
#: reactor.
_SWITCH_INTERVAL_S: Final = 0.0005

#: Microseconds by which each progress report extends systemd's start timeout.
_MORE_TIME: Final = "EXTEND_TIMEOUT_USEC=60000000"


def run(configured: Configured, read: Callable[[], Configured], control: BinaryIO | None = None) -> int:
    """Run a broker until SIGTERM or SIGINT; return the exit code. ``read`` reads the configuration for a reload.

    For tests, ``control`` has lines that ``ControlLines`` follows.

    :raises GatewayError: when it cannot start.
    """
    tune_allocator()
    raise_descriptor_limit()
    start_logging(configured.settings.log)
    bridge_twisted()
    reactor = install()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    return _BrokerProcess(configured, read, reactor, control).run()


class Served(Protocol):
    """The broker of a process. ``node`` is ``None`` while a member of a cluster does not lead.

    ``on_failure`` is called when it cannot continue, ``on_start_failed`` with the error of a start, and ``on_stop``
    when an operator stops it over HTTP.
    """

    on_failure: Callable[[], None]
    on_start_failed: Callable[[Exception], None]
    on_stop: Callable[[], None]

    @property
    def node(self) -> "Node | None":
        """The node that leads, or the only one."""
        ...

    @property
    def addresses(self) -> Mapping[str, tuple[str, int]]:
        """The addresses of the listeners."""
        ...

    def start(self, ready: Callable[[], None], progress: Callable[[str], None]) -> None:
        """Start; then call ``ready``. ``progress`` gets lines of text meanwhile."""
        ...

    def stop(self, done: Callable[[], None]) -> None:
        """Stop in order; then call ``done``."""
        ...

    def reload(self) -> ReloadResult:
        """Read the configuration and the certificates again.

        :raises GatewayError: if something is invalid; then nothing has changed.
        """
        ...

    def info(self) -> dict[str, object]:
        """Return the state for a dump of the process."""
        ...


class _BrokerProcess:
    """The process of one node: it starts, reloads and stops the node on the signals of its operator."""

    def __init__(
        self, configured: Configured, read: Callable[[], Configured], reactor: Any, control: BinaryIO | None
    ) -> None:
        from gateway.node.host import NodeHost  # imports Twisted's reactor machinery: after the installation

        self._settings = configured.settings
        self._reactor = reactor
        self._control = None if control is None else ControlLines(control, reactor, self._stop, _print)
        self._collector = GarbageCollector()
        self._failure: Exception | None = None
        self._is_stopping = False
        host = NodeHost() if self._control is None else self._control.host()
        self._served = served = self._built(configured, read, host)
        self._signals = Signals(reactor, self._stop, self._reload, served.info)
        served.on_failure = self._store_failed
        served.on_start_failed = self._end_with
        served.on_stop = self._stop
        if served.node is not None:
            self._node_built(served.node)

    def run(self) -> int:
        """Run the reactor until the node has stopped. :raises GatewayError: if it stopped because of an error."""
        self._reactor.callWhenRunning(self._start)
        self._signals.install()
        self._reactor.run(installSignalHandlers=False)
        if self._failure is not None:
            raise self._failure
        return 0

    def _built(self, configured: Configured, read: Callable[[], Configured], host: "NodeHost") -> "Served":
        """Return the broker: one node, or a member of a cluster, which runs a node while it leads."""
        if configured.settings.cluster.servers:
            from gateway.node.cluster.member import ClusterMember

            return ClusterMember(configured, self._reactor, self._collector, read, host, self._node_built)
        from gateway.node.node import Node

        return Node(configured, self._reactor, self._collector, read, host)

    def _node_built(self, node: "Node") -> None:
        """Connect what depends on a node that was just built."""
        node.live_settings.on_log_changed = self._signals.dump_to_log

    def _start(self) -> None:
        self._collector.start()
        self._served.start(self._ready, lambda progress: tell_systemd(f"STATUS={progress}\n{_MORE_TIME}"))

    def _ready(self) -> None:
        _print(announcement(self._served.addresses, self._settings.data))  # in one write, for scripts that wait for it
        if self._control is not None:
            self._control.follow()
        tell_systemd("READY=1\nSTATUS=")
        self._signals.is_ready = True

    def _reload(self) -> None:
        node = self._served.node
        if not self._signals.is_ready:
            _log.warning("reload refused: the broker is starting")
            return
        try:
            before = self._settings if node is None else node.settings
            log_reload(self._served.reload())
            if node is not None:
                record_reload(node.broker.audit, before, node.settings)
                node.touch()
        except GatewayError as error:
            log_refused_reload(error)

    def _stop(self) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            _log.info("stopping")
            tell_systemd("STOPPING=1")
            self._served.stop(self._reactor.stop)

    def _store_failed(self) -> None:
        self._end_with(StorageError("the store failed; the log has the reason"))

    def _end_with(self, error: Exception) -> None:
        """Stop the node; ``run`` raises the first error."""
        self._failure = self._failure or error
        self._stop()


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
