"""The kernel's clock in virtual time."""

from collections.abc import Callable

from gateway.net.clock import ReactorClock
from gateway.simulation.world.reactor import SimulatedReactor


class SimulatedClock(ReactorClock):
    """Virtual time: a reading of ``monotonic_s`` takes some of it."""

    def __init__(self, reactor: SimulatedReactor, touch: Callable[[], None]) -> None:
        super().__init__(reactor, touch)
        self._world = reactor.world
        self.wall_ms = reactor.world.wall_ms

    def monotonic_s(self) -> float:
        """Return monotonic seconds."""
        return self._world.read_clock()
