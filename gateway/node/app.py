"""``gateway run``: installs the reactor, starts a node, prints its listeners, and stops it on a signal."""

import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, Final

from gateway.config import Configured, Settings
from gateway.kernel.errors import GatewayError, StorageError
from gateway.logs import StructuredLog
from gateway.logs.setup import start_logging
from gateway.logs.twisted import bridge_twisted
from gateway.net.allocator import tune_allocator
from gateway.net.clock import ReactorClock
from gateway.net.descriptors import raise_descriptor_limit
from gateway.net.listeners import address_text
from gateway.net.reactor import install
from gateway.node.advanced_clock import AdvancedClock, follow_lines
from gateway.node.audit import record_reload
from gateway.node.control.live_settings import log_refused_reload, log_reload
from gateway.node.garbage_collector import GarbageCollector
from gateway.node.signals import Signals
from gateway.node.systemd import tell_systemd
from gateway.version import VERSION

_log: Final = StructuredLog("app")

#: Interval at which Python switches threads, in seconds. With the default of 5 ms a commit waits that long for a busy
#: reactor.
_SWITCH_INTERVAL_S: Final = 0.0005

#: Microseconds by which each progress report extends systemd's start timeout.
_MORE_TIME: Final = "EXTEND_TIMEOUT_USEC=60000000"


def run(configured: Configured, read: Callable[[], Configured], advances: BinaryIO | None = None) -> int:
    """Run a broker until SIGTERM or SIGINT; return the exit code. ``read`` reads the configuration for a reload.

    For tests, ``advances`` has lines with seconds by which the clock advances.

    :raises GatewayError: when it cannot start.
    """
    settings = configured.settings
    tune_allocator()
    raise_descriptor_limit()
    start_logging(settings.log)
    bridge_twisted()
    reactor = install()
    from gateway.node.host import NodeHost
    from gateway.node.node import Node  # imports Twisted's reactor machinery, so it comes after the installation

    collector = GarbageCollector()
    clocks: list[AdvancedClock] = []

    def make_clock(reactor: Any, touch: Callable[[], None]) -> ReactorClock:
        clocks.append(AdvancedClock(reactor, touch))
        return clocks[0]

    host = NodeHost() if advances is None else NodeHost(make_clock=make_clock)
    node = Node(configured, reactor, collector, read, host)
    failures: list[Exception] = []
    is_stopping: list[bool] = []

    def start() -> None:
        collector.start()
        node.start(ready, lambda progress: tell_systemd(f"STATUS={progress}\n{_MORE_TIME}"))

    def ready() -> None:
        _announce(node.addresses, settings)
        if advances is not None:
            follow_lines(advances, reactor, clocks[0], _print)
        tell_systemd("READY=1\nSTATUS=")
        signals.is_ready = True

    def start_failed(error: Exception) -> None:
        failures.append(error)  # raised again below
        stop()

    def stop() -> None:
        if not is_stopping:
            is_stopping.append(True)
            _log.info("stopping")
            tell_systemd("STOPPING=1")
            node.stop(reactor.stop)

    def reload() -> None:
        if not signals.is_ready:
            _log.warning("reload refused: the broker is still starting")
            return
        before = node.settings
        try:
            log_reload(node.live_settings.reload())
            record_reload(node.broker.audit, before, node.settings)
            node.touch()
        except GatewayError as error:
            log_refused_reload(error)

    def fail() -> None:
        failures.append(StorageError("the store failed; the log has the reason"))
        stop()

    node.on_failure = fail
    node.on_start_failed = start_failed
    reactor.callWhenRunning(start)
    signals = Signals(reactor, stop, reload, node.info)
    signals.install()
    node.live_settings.on_log_changed = signals.dump_to_log
    node.on_stop = stop
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    reactor.run(installSignalHandlers=False)
    if failures:
        raise failures[0]
    return 0


def _announce(addresses: Mapping[str, tuple[str, int]], settings: Settings) -> None:
    """Print the listeners and a first command to try, in one write, for scripts that wait for the first line."""
    lines = [f"gateway {VERSION} is running, data in {settings.data}"]
    lines += [f"  {name:<10} {address_text(address)}" for name, address in addresses.items()]
    if "amqp" in addresses:
        url = f"amqp://guest:guest@127.0.0.1:{addresses['amqp'][1]}/%2F"
        lines += [
            "Try it (amqp-tools, or any AMQP 0-9-1 client):",
            f"  amqp-declare-queue -u {url} -q hello",
            f"  amqp-publish -u {url} -r hello -b 'Hello World!'",
            f"  amqp-get -u {url} -q hello",
        ]
    _print("\n".join(lines))


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
