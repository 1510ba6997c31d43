"""The commit of a transaction: its actions in order, in slices if they are much work, and one step of the store."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from gateway.kernel.queueing.ledger import MOST_AT_ONCE
from gateway.kernel.streams.stream import Stream
from gateway.kernel.vhosts.fanout import MOST_QUEUES, SlicedFanout

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.journal.open_step import OpenStep
    from gateway.kernel.routing.exchange import Route

A = TypeVar("A")

#: The number of actions or of offers to queues between two readings of the clock.
_STEP: Final = 64


class Commit(Generic[A]):
    """Performs the actions of one transaction.

    ``route_of`` returns the route of an action that publishes, and ``None`` for others; it is called once for each.
    ``perform`` performs an action in the turn of the call. ``fanout_of`` returns the offers of a message that goes to
    very many queues, and ``offered`` is called when all of them were made.
    """

    def __init__(
        self,
        journal: "Journal",
        actions: Sequence[A],
        route_of: "Callable[[A], Route | None]",
        perform: "Callable[[A, Route | None], None]",
        fanout_of: "Callable[[A, Route], SlicedFanout]",
        offered: Callable[[A, SlicedFanout], None],
    ) -> None:
        self._journal = journal
        self._actions = actions
        self._route_of = route_of
        self._perform = perform
        self._fanout_of = fanout_of
        self._offered = offered
        self._routes = [route_of(action) for action in actions] if len(actions) <= MOST_AT_ONCE else None
        self._at = 0
        self._route: Route | None = None  # of the action at ``_at``, if it was routed already

    @property
    def is_small(self) -> bool:
        """Whether ``steps`` performs all actions at once."""
        return self._routes is not None and sum(map(_width, self._routes)) <= MOST_QUEUES

    def steps(self) -> Iterator[None]:
        """Return the steps that perform the actions.

        Streams and archives assign positions by turn, so from the first message for one of these on, the rest is done
        in the last turn.
        """
        if not self.is_small:
            step = self._journal.open_step()
            try:
                yield from self._steps_before_last(step)
            finally:
                self._journal.close_step(step)
        while self._at < len(self._actions):
            self._perform_next()

    def _steps_before_last(self, step: "OpenStep") -> Iterator[None]:
        while self._at < len(self._actions):
            self._journal.enter(step)
            try:
                self._perform_some()
            finally:
                self._journal.leave()
            yield
            route = self._route
            if route is not None:
                if _is_late(route):
                    return
                fanout = self._fanout_of(self._actions[self._at], route)
                yield from fanout.offers(step)
                fanout.finish()
                self._offered(self._actions[self._at], fanout)
                self._route = None
                self._at += 1

    def _perform_some(self) -> None:
        """Perform some actions, up to one that cannot be performed in a turn with others."""
        work = 0
        while self._at < len(self._actions) and work < _STEP:
            self._route = self._next_route()
            if self._route is not None and (_width(self._route) > MOST_QUEUES or _is_late(self._route)):
                return
            work += max(1, _width(self._route))
            self._perform_next()

    def _perform_next(self) -> None:
        route = self._route if self._route is not None else self._next_route()
        self._route = None
        self._perform(self._actions[self._at], route)
        self._at += 1

    def _next_route(self) -> "Route | None":
        return self._route_of(self._actions[self._at]) if self._routes is None else self._routes[self._at]


def _is_late(route: "Route") -> bool:
    """Whether a message has to be published in the turn in which the store gets the step."""
    return bool(route.archives) or any(isinstance(queue, Stream) for queue in route.queues)


def _width(route: "Route | None") -> int:
    """Return the number of queues that an action offers a message to."""
    return 0 if route is None else len(route.queues)
