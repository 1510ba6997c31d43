"""A disk that outlives the processes that use it, and fails on purpose."""

from collections.abc import Callable
from errno import EIO
from pathlib import Path
from random import Random

from gateway.simulation.disk.device import Device
from gateway.simulation.disk.process_disk import ProcessDisk
from gateway.simulation.disk.steps import Steps
from gateway.simulation.disk.threads import SimulatedThreads


class SimulatedDisk:
    """The disk of a node, over all its lives.

    What was written is seen by the next process; what was synced survives a loss of power.

    :param random: decides what a loss of power keeps, and how a full disk fails.
    :param log: called with each operation, in one line; ``None`` for no log.
    """

    def __init__(self, random: Random, log: Callable[[str], None] | None = None) -> None:
        self._device = Device(random, log)
        self._steps: Steps | None = None

    def process(self, threads: SimulatedThreads) -> ProcessDisk:
        """Return the disk as a new process uses it, ``LmdbStore``'s ``disk``; ``threads`` are those of the process.

        At most one process lives at a time: an earlier one is killed.
        """
        self.kill()
        self._device.fails = False
        self._steps = Steps(self._device, threads)
        return ProcessDisk(self._device, self._steps)

    # What happens to the process

    def kill(self) -> None:
        """End the process as ``kill -9`` does: what it wrote is there, transactions that it did not finish are not."""
        if self.is_in_use:
            self._device.note("kill")
            assert self._steps is not None
            self._steps.end()

    def kill_after(self, operations: int) -> None:
        """Kill the process after so many more operations, also within a call of its kernel.

        Such a call ends with ``ProcessKilled``.
        """
        assert self._steps is not None, "no process uses the disk"
        self._steps.left = operations

    @property
    def is_in_use(self) -> bool:
        """Whether a process uses the disk, which was not killed."""
        return self._steps is not None and not self._steps.is_over

    def power_cut(self) -> None:
        """End the process, and lose what was not synced: random parts of it survive."""
        self.kill()
        self._device.note("power cut")
        self._device.lose_power()

    # Faults

    @property
    def sync_delay_s(self) -> float:
        """The virtual time of a sync, in seconds."""
        return self._device.sync_delay_s

    @sync_delay_s.setter
    def sync_delay_s(self, delay_s: float) -> None:
        self._device.sync_delay_s = delay_s

    def fill(self) -> None:
        """Let every write that needs new space fail: with ``ENOSPC``, or with ``EIO`` as LMDB reports short writes."""
        self._device.note("fill")
        self._device.is_full = True

    def drain(self) -> None:
        """End the effect of ``fill``."""
        self._device.note("drain")
        self._device.is_full = False

    def disturb(self, count: int = 1) -> None:
        """Let the next ``count`` syncs of data fail with ``EIO``."""
        self._device.note(f"disturb {count}")
        self._device.errors = [EIO] * count

    def repair(self) -> None:
        """End the effects of ``fill`` and ``disturb``, and that of ``fail`` if nothing was committed since."""
        self.drain()
        self._device.errors.clear()
        self._device.fails = False

    def fail(self) -> None:
        """Let the next synced commit of LMDB fail finally: its root cannot be written.

        A new process is not affected.
        """
        self._device.note("fail")
        self._device.fails = True

    def lie(self) -> None:
        """Let syncs return although nothing is durable: a loss of power restores the disk of some moment since now."""
        self._device.note("lie")
        self._device.lie(True)

    def tell_the_truth(self) -> None:
        """End the effect of ``lie``: the next sync makes everything durable."""
        self._device.note("tell the truth")
        self._device.lie(False)

    # Looking at it

    @property
    def free_bytes(self) -> int:
        """The free space in bytes."""
        return self._device.free_bytes

    def content(self, path: str | Path) -> bytes:
        """Return the content of a file, such as that of a segment. :raises FileNotFoundError: without one."""
        return bytes(self._device.files.file(Path(path)).data)

    def paths(self) -> list[Path]:
        """Return the paths of all files."""
        return [path for path, _ in self._device.files.walk(Path("/"))]
