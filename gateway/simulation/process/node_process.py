"""One node in the virtual world: started, stopped, killed and started again on the same disk."""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from gateway.config import Configured, Settings
from gateway.kernel.errors import StorageError
from gateway.node.garbage_collector import GarbageCollector
from gateway.node.host import NodeHost
from gateway.node.node import Node
from gateway.simulation.findings import Findings, place_of
from gateway.simulation.network.network import Network
from gateway.simulation.plugins.registry import SimulatedPlugins
from gateway.simulation.process.clock import SimulatedClock
from gateway.simulation.process.disk import NodeDisk
from gateway.simulation.process.hashing import SimulatedHashing
from gateway.simulation.world.reactor import SimulatedReactor
from gateway.simulation.world.tasks import Promise
from gateway.simulation.world.world import World

#: Bytes of memory that the process seems to use, and of free disk, without a fault.
_MEMORY_USED: Final = 100 * 2**20
_DISK_FREE: Final = 2**40


class NodeProcess:
    """The process of a node. ``node`` is ``None`` while there is none. ``memory_used`` is what it seems to use.

    A process ``has_failed`` from the final failure of its store to the next start; ``on_failed_end`` is called when it
    ends: what it answered meanwhile holds until then, and what it had not on disk is lost.

    ``disk`` outlives the processes; ``plugins`` are those that fail when the seed says so.
    """

    def __init__(
        self, world: World, network: Network, disk: NodeDisk, findings: Findings, settings: Mapping[str, Any]
    ) -> None:
        self.node: Node | None = None
        self.reactor: SimulatedReactor | None = None
        self.memory_used = _MEMORY_USED
        self.disk_free = _DISK_FREE
        self.starts = 0
        self.has_failed = False
        self.on_failed_end: Callable[[], None] = lambda: None
        self._is_ready: Promise[bool] | None = None
        self._is_stopped: Promise[None] | None = None
        self._world = world
        self._network = network
        self.disk = disk
        self._findings = findings
        self.plugins = SimulatedPlugins(world)
        self._chosen = settings

    @cached_property
    def _settings(self) -> Settings:
        """The settings of all lives; the plugins that they enable are chosen before the first one."""
        return Settings(data=Path("/simulated"), **self._chosen, **self.plugins.settings)

    @property
    def ports(self) -> Mapping[str, int]:
        """The ports of the listeners, by name; none while there is no process."""
        return {} if self.node is None else {name: port for name, (_, port) in self.node.addresses.items()}

    @property
    def is_stopping(self) -> bool:
        """Whether the node was told to stop, and its process has not ended."""
        return self._is_stopped is not None

    def start(self) -> Promise[bool]:
        """Start the node; the promise is fulfilled with whether it accepts connections, or ends before it does."""
        self.starts += 1
        self.has_failed = False
        self.reactor = reactor = SimulatedReactor(self._world, self._raised)
        host = NodeHost(
            make_clock=SimulatedClock,
            open_store=self.disk.open_store,
            make_hashing=lambda threads, most, call: SimulatedHashing(reactor),
            memory_used=lambda: self.memory_used,
            disk_free=lambda path: self.disk_free,
            load_plugins=self.plugins.load,
            has_watchdog=False,
        )
        self._is_ready = is_ready = Promise[bool]()
        try:
            # a collection would take real time, and find what earlier runs left
            collector = GarbageCollector(lambda: self._world.now_s, collect=lambda: 0)
            self.node = node = Node(Configured(self._settings, {}), reactor, collector, host=host)
        except StorageError:  # the disk has a fault: a supervisor starts the process again
            self.kill()
            is_ready.fulfil(False)
            return is_ready

        def ready() -> None:
            self._network.reactor = reactor
            is_ready.fulfil(True)

        def failed(error: Exception) -> None:
            self._findings.add("a start succeeds", f"{type(error).__name__}: {error} {place_of(error)}")
            is_ready.fulfil(False)

        node.on_start_failed = failed
        node.on_failure = self._store_failed
        reactor.run(lambda: node.start(ready))
        return is_ready

    def kill(self) -> None:
        """End the process as kill -9 does."""
        if self.node is not None and self.has_failed:
            self.on_failed_end()
        if self.reactor is not None:
            self.reactor.kill()
        self.disk.kill()
        self.node = self.reactor = None
        if self._is_ready is not None:
            self._is_ready.fulfil(False)
        if self._is_stopped is not None:
            self._is_stopped.fulfil(None)
            self._is_stopped = None
        self._network.process_ended()

    def stop(self) -> Promise[None]:
        """Stop the node in order; the promise is fulfilled when the process has ended, in order or not."""
        if self._is_stopped is not None:
            return self._is_stopped
        self._is_stopped = is_stopped = Promise[None]()
        node, reactor = self.node, self.reactor
        assert node is not None
        assert reactor is not None

        def stopped() -> None:
            if self.node is node:
                self.kill()

        reactor.run(lambda: node.stop(stopped))
        return is_stopped

    def _store_failed(self) -> None:
        self.has_failed = True
        self.stop()

    def _raised(self, error: BaseException) -> None:
        self._findings.add("no exception reaches the reactor", f"{type(error).__name__}: {error} {place_of(error)}")
