"""The figures of users in a cell, which its leader sends to all nodes."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Final

from gateway.cluster.cells import frames_of
from gateway.cluster.cells.user_figures import Counts
from gateway.cluster.queue_log import Epoch
from gateway.kernel.broker.broker import Broker
from gateway.kernel.clock import Clock
from gateway.kernel.settings.user_counters import UserTally

#: The pause between two rounds, in seconds.
_PERIOD_S: Final = 1.5

#: Users that are counted in one step.
_STEP: Final = 50


class UserCounting:
    """Counts for the users of a broker that have limits, and passes the frames to ``send``."""

    def __init__(self, broker: Broker, cell: int, epoch: Epoch, clock: Clock, send: Callable[[bytes], None]) -> None:
        self._broker = broker
        self._cell = cell
        self._epoch = epoch
        self._clock = clock
        self._send = send
        self._round = 0
        self._is_closed = False

    def start(self) -> None:
        """Begin."""
        if not self._is_closed:
            self._broker.clock.background.add(self._counting())

    def close(self) -> None:
        """Send nothing more."""
        self._is_closed = True

    def _counting(self) -> Iterator[None]:
        found: dict[str, Counts] = {}
        has_limits = self._is_everyone_limited
        for number, user in enumerate(self._limited()):
            if user:
                has_limits = True
                counts = self._counts(user)
                if any(counts):
                    found[user] = counts
            if number % _STEP == 0:
                yield
        if self._is_closed:
            return
        if has_limits:
            self._round += 1
            for frame in frames_of(self._cell, self._epoch, self._round, found):
                self._send(frame)
        self._clock.call_later(_PERIOD_S, self.start)

    @property
    def _tallies(self) -> tuple[UserTally, ...]:
        tallies = self._broker.user_tallies
        return tallies.queues, tallies.bindings, tallies.consumers

    @property
    def _is_everyone_limited(self) -> bool:
        """Whether the node has a limit for users without one of their own."""
        limits = self._broker.connections.limits
        return any((limits.per_user, limits.channels_per_user, *(tally.default for tally in self._tallies)))

    def _limited(self) -> Iterator[str]:
        """Yield the users that have a limit, and an empty name for others."""
        broker = self._broker
        if self._is_everyone_limited:
            users = [broker.connections.users(), *(tally.users() for tally in self._tallies)]
            yield from dict.fromkeys(chain.from_iterable(users))
            return
        for user in list(broker.directory.user_by_name.values()):
            yield user.name if user.limits else ""

    def _counts(self, user: str) -> Counts:
        connections = self._broker.connections
        tallied = (tally.count_of(user) for tally in self._tallies)
        return connections.count_of(user), connections.channels_of(user), *tallied
