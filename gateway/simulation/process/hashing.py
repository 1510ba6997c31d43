"""Password hashing in virtual time: the answer comes later, as from a thread."""

from collections.abc import Callable
from typing import Final, TypeVar

from gateway.simulation.world.reactor import SimulatedReactor

#: The longest time that a hash takes, in seconds.
_LONGEST_S: Final = 0.05

T = TypeVar("T")


class SimulatedHashing:
    """A ``WorkerPool`` whose work is done after a delay that the seed decides."""

    def __init__(self, reactor: SimulatedReactor) -> None:
        self.unfinished = 0
        self.refused = 0
        self._reactor = reactor

    def submit(self, work: Callable[[], T], done: Callable[[T], None], failed: Callable[[], None]) -> bool:
        """Do the work later, and call ``done``."""

        def finish() -> None:
            self.unfinished -= 1
            done(work())

        self.unfinished += 1
        self._reactor.callLater(self._reactor.world.random.uniform(0, _LONGEST_S), finish)
        return True

    def stop(self) -> None:
        """Do nothing: the process ends."""
