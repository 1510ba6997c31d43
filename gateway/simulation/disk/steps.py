"""The steps of one process on a simulated disk: switch points between threads, and the faults of the device.

Once its process was killed, no step is made.
"""

from collections.abc import Callable

from greenlet import GreenletExit

from gateway.simulation.disk.device import Device
from gateway.simulation.disk.threads import ProcessKilled, SimulatedThreads


class Steps:
    """The steps of one process. With ``left`` it is killed after so many more operations."""

    def __init__(self, device: Device, threads: SimulatedThreads) -> None:
        self._device = device
        self._threads = threads
        self.is_over = False
        self.left: int | None = None

    def end(self) -> None:
        """End the process with its threads."""
        self.is_over = True
        self._threads.kill()

    def pause(self) -> None:
        """Let other threads run."""
        self._require_alive()
        self._threads.pause()
        self._require_alive()

    def step(self, operation: str, delay_s: float = 0.0) -> None:
        """Let other threads run, then log an operation that follows at once."""
        self._require_alive()
        self._threads.pause(delay_s)
        if self.left is not None:
            self._count_down()
        self._require_alive()
        self._device.note(operation)

    def sync(self, operation: str, *, may_fail: bool = True) -> int:
        """Perform the delay of a sync; return its error number, 0 if it succeeds: ``synced`` follows then."""
        self.step(operation, self._device.sync_delay_s)
        return self._device.sync_fault() if may_fail else 0

    def synced(self, sync: Callable[[], None]) -> None:
        """Make something durable with ``sync``, unless the device lies."""
        self._device.synced(sync)

    def space_fault(self, size: int) -> int:
        """Return the error number of a write that needs ``size`` more bytes or pages, 0 if it succeeds."""
        return self._device.space_fault(size)

    def takes_failure(self) -> bool:
        """Return whether LMDB's root cannot be written."""
        return self._device.takes_failure()

    def _require_alive(self) -> None:
        if self.is_over:
            if self._threads.is_in_thread:
                raise GreenletExit
            raise ProcessKilled

    def _count_down(self) -> None:
        assert self.left is not None
        self.left -= 1
        if self.left < 0 and not self.is_over:
            self._device.note("kill")
            self.end()
