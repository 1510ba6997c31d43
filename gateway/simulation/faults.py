"""The faults of a run: kills, broken connections, full disks, alarms, jumps of the clock."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import ClassVar, Final

from gateway.simulation.clients.errors import Lost
from gateway.simulation.clients.http import HttpClient
from gateway.simulation.plugins.registry import OBSERVING
from gateway.simulation.programs.amqp import TopologyProgram
from gateway.simulation.scene import Scene
from gateway.simulation.topology import SharedTopology

#: The time in which faults begin, and the longest that one lasts, in seconds.
_FAULTS_END_S: Final = 4.0

#: The time in which most clients publish, in seconds: half of the faults come in it.
_BUSY_S: Final = 0.6
_LONGEST_S: Final = 1.0

#: The time between two looks whether a process has ended, and the longest times until it has: by a kill at the next
#: operations of the disk, and after the store has failed at the next commit. In seconds.
_LOOK_S: Final = 0.002
_KILL_S: Final = 0.6
_FAILURE_S: Final = 5.0

#: The most starts in a row, and the time between two of them in seconds, as of a supervisor.
_MOST_STARTS: Final = 20
_RESTART_S: Final = 0.5

#: Answers to a compaction: it begins, another one is in progress, the node is slow, or not ready.
_COMPACTS: Final = (200, 202, 204, 400, 408, 503)

#: Bytes of memory above any limit.
_TOO_MUCH: Final = 2**50


class Fault(ABC):
    """One fault, which begins at ``at_s`` and lasts for ``lasts_s``."""

    kind: ClassVar[str]

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        self.scene = scene
        self.topology = topology
        self.name = f"{self.kind}-{number}"
        self.random = random
        self.at_s = random.uniform(0.05, random.choice((_BUSY_S, _FAULTS_END_S)))
        self.lasts_s = random.uniform(0, _LONGEST_S)

    async def run(self) -> None:
        """Let it happen, and end it."""
        await self.scene.sleep(self.at_s)
        self.scene.trace.add(self.name, "begins")
        await self.happen()
        self.scene.trace.add(self.name, "is over")

    def kill(self) -> None:
        """End the process without a stop in order, and count that."""
        process = self.scene.process
        if not process.has_failed:  # else the end of the process is counted anyway
            self.scene.history.killed()
        process.kill()

    async def until(self, is_over: Callable[[], bool], seconds: float) -> None:
        """Wait for a condition, for some time at most."""
        ends_s = self.scene.world.now_s + seconds
        while not is_over() and self.scene.world.now_s < ends_s:
            await self.scene.sleep(_LOOK_S)

    @abstractmethod
    async def happen(self) -> None:
        """Cause the fault, wait, and end it."""


class Kill(Fault):
    """The process ends by kill -9 and is started again."""

    kind = "kill"

    async def happen(self) -> None:
        """Kill the process, wait, and start it."""
        if self.scene.process.node is not None:
            self.kill()
            await self.scene.sleep(self.lasts_s)
            await start(self.scene, self.topology)


class KillSoon(Fault):
    """The process ends by kill -9 between two operations of the disk."""

    kind = "kill-soon"

    async def happen(self) -> None:
        """Kill the process after some operations of its store, and start it."""
        process = self.scene.process
        if process.node is None:
            return
        process.disk.kill_after(self.random.randint(1, 60))
        await self.until(lambda: not process.disk.is_in_use, _KILL_S)
        if process.node is not None:
            self.kill()
        await self.scene.sleep(self.lasts_s)
        await start(self.scene, self.topology)


class FailedStore(Fault):
    """The store fails for good: the root of LMDB cannot be written. The node stops, and is started again."""

    kind = "failed-store"

    async def happen(self) -> None:
        """Let the next commit fail, wait for the end of the process, and start it."""
        process = self.scene.process
        node = process.node
        if node is None:
            return
        process.disk.fail()
        await self.until(lambda: process.node is not node, _FAILURE_S)
        if process.node is node:
            process.disk.repair()  # nothing was committed meanwhile
        await self.scene.sleep(self.lasts_s)
        await start(self.scene, self.topology)


class PowerCut(Fault):
    """The machine loses power: what was not synced is lost, or random parts of it."""

    kind = "power-cut"

    async def happen(self) -> None:
        """Cut the power, wait, and start the process."""
        if self.scene.process.node is not None:
            self.kill()
            self.scene.process.disk.power_cut()
            await self.scene.sleep(self.lasts_s)
            await start(self.scene, self.topology)


class CompactStore(Fault):
    """An operator compacts the store, while clients use it and other faults happen."""

    kind = "compaction"

    async def happen(self) -> None:
        """Start some compactions; one that is still in progress refuses the next."""
        for _ in range(self.random.randint(1, 3)):
            with suppress(Lost):
                answer = await HttpClient(self.scene, self.name).request("POST", "store", "compact")
                self.scene.findings.require(
                    answer.status in _COMPACTS, "a valid request is not refused", f"{self.name}: {answer}"
                )
            await self.scene.sleep(self.lasts_s)


class LyingDisk(Fault):
    """Syncs return although nothing is durable, until the power is cut: what was confirmed meanwhile may be lost.

    From its beginning only the health of the node is checked: it starts, and it works on an earlier state.
    """

    kind = "lying-disk"

    async def happen(self) -> None:
        """Lie for some time, cut the power, and start the process."""
        process, disk = self.scene.process, self.scene.process.disk
        disk.lie()
        self.scene.findings.limit_to_health()
        await self.scene.sleep(self.lasts_s)
        if process.node is not None:
            self.kill()
            disk.power_cut()
        disk.tell_the_truth()
        await start(self.scene, self.topology)


class FullDisk(Fault):
    """The disk is full."""

    kind = "full-disk"

    async def happen(self) -> None:
        """Fill the disk for some time."""
        self.scene.process.disk.fill()
        await self.scene.sleep(self.lasts_s)
        self.scene.process.disk.drain()


class SlowDisk(Fault):
    """Syncs take long."""

    kind = "slow-disk"

    async def happen(self) -> None:
        """Slow syncs down for some time."""
        disk = self.scene.process.disk
        disk.sync_delay_s = self.random.uniform(0.001, 0.2)
        await self.scene.sleep(self.lasts_s)
        disk.sync_delay_s = 0.0


class FailingSyncs(Fault):
    """Some syncs fail; the store repeats its commits."""

    kind = "failing-syncs"

    async def happen(self) -> None:
        """Let the next syncs fail."""
        self.scene.process.disk.disturb(self.random.randint(1, 3))


class Restart(Fault):
    """The node is stopped in order and started again."""

    kind = "restart"

    async def happen(self) -> None:
        """Stop the node, wait, and start it."""
        if self.scene.process.node is not None:
            await self.scene.process.stop()
            await self.scene.sleep(self.lasts_s)
            await start(self.scene, self.topology)


class CutConnections(Fault):
    """Some connections break."""

    kind = "cut"

    async def happen(self) -> None:
        """Cut some connections; the server notices at once, or later."""
        for connection in self.scene.network.open_connections():
            if self.random.random() < 0.5:
                connection.cut(self.random.choice((0.0, self.lasts_s)))


class MemoryAlarm(Fault):
    """The process uses more memory than its limit."""

    kind = "memory-alarm"

    async def happen(self) -> None:
        """Use too much memory for some time."""
        process = self.scene.process
        process.memory_used += _TOO_MUCH  # two alarms may overlap
        await self.scene.sleep(self.lasts_s)
        process.memory_used -= _TOO_MUCH


class ClockJump(Fault):
    """The wall clock jumps; monotonic time does not."""

    kind = "clock-jump"

    async def happen(self) -> None:
        """Move the wall clock."""
        self.scene.world.jump(self.random.uniform(-3600, 3600))


class FailingPlugin(Fault):
    """A plugin that observes all messages and events raises, answers nonsense, or takes long."""

    kind = "failing-plugin"

    def __init__(self, scene: Scene, topology: SharedTopology, number: int, random: Random) -> None:
        super().__init__(scene, topology, number, random)
        self._moods = scene.process.plugins.use(OBSERVING)

    async def happen(self) -> None:
        """Trace the virtual host, so that tracers are called, and let calls of the plugin fail for some time."""
        with suppress(Lost):
            await HttpClient(self.scene, self.name).request("PUT", "vhosts", "/", fields={"tracing": True})
        self._moods.share = self.random.choice((0.05, 0.3, 0.9))
        await self.scene.sleep(self.lasts_s)
        self._moods.share = 0.0


async def start(scene: Scene, topology: SharedTopology) -> None:
    """Start the process if there is none, again while its disk has a fault, and declare the topology."""
    process = scene.process
    for _ in range(_MOST_STARTS):
        if process.node is not None:
            return  # another fault has started it meanwhile
        scene.history.incarnation += 1
        if await process.start():
            await TopologyProgram(scene, topology, 0, Random(0)).run()
            return
        await scene.sleep(_RESTART_S)
    scene.findings.add("a start succeeds", f"{_MOST_STARTS} starts failed")
