"""The commit of a transaction: its actions in order, in slices if they are much work, and one step of the store."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from gateway.kernel.queueing.ledger import MOST_AT_ONCE
from gateway.kernel.routing.exchange import MOST_QUEUES, Route
from gateway.kernel.routing.router import Walk
from gateway.kernel.routing.sliced_fanout import SlicedFanout

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.journal.open_step import OpenStep

A = TypeVar("A")

#: The number of actions or of offers to queues between two readings of the clock.
_STEP: Final = 64


class Commit(Generic[A]):
    """Performs the actions of one transaction.

    ``find_route`` returns the route of an action that publishes, or the walk to it, and ``None`` for others; it is
    called once for each that publishes. ``walking`` returns the steps of a walk. ``perform`` performs an action in the
    turn of the call. ``fanout_of`` returns the offers of a message that goes to very many queues, and ``offered`` is
    called when all of them were made.
    """

    def __init__(
        self,
        journal: "Journal",
        actions: Sequence[A],
        find_route: Callable[[A], Route | Walk | None],
        walking: Callable[[Walk], Iterator[None]],
        perform: "Callable[[A, Route | None], None]",
        fanout_of: "Callable[[A, Route], SlicedFanout]",
        offered: Callable[[A, SlicedFanout], None],
    ) -> None:
        self._journal = journal
        self._actions = deque(actions)  # those that are left: 100,000 that are freed at once would take 25 ms
        self._find_route = find_route
        self._walking = walking
        self._perform = perform
        self._fanout_of = fanout_of
        self._offered = offered
        self._routes: deque[Route | Walk | None] = deque()  # of the first actions
        self._route: Route | Walk | None = None  # of the next action, if it needs turns of its own
        #: Whether ``steps`` performs all actions at once.
        self.is_small = len(actions) <= MOST_AT_ONCE and self._is_little_work()

    def _is_little_work(self) -> bool:
        """Route the actions, until they are much work; return whether they are not."""
        width = 0
        for action in self._actions:
            found = self._find_route(action)
            self._routes.append(found)
            if isinstance(found, Walk):
                return False
            width += _width(found)
            if width > MOST_QUEUES:
                return False
        return True

    def steps(self) -> Iterator[None]:
        """Return the steps that perform the actions."""
        if self.is_small:
            while self._actions:
                self._perform_next(self._next_route())
            return
        step = self._journal.open_step()
        try:
            yield from self._steps_before_last(step)
        finally:
            self._journal.close_step(step)

    def _steps_before_last(self, step: "OpenStep") -> Iterator[None]:
        while self._actions:
            self._journal.enter(step)
            try:
                self._perform_some()
            finally:
                self._journal.leave()
            yield
            if isinstance(self._route, Walk):
                yield from self._walking(self._route)
                self._route = self._route.route
            route, self._route = self._route, None
            if route is not None:
                yield from self._offering(self._actions.popleft(), route, step)

    def _offering(self, action: A, route: Route, step: "OpenStep") -> Iterator[None]:
        """Return the steps that publish a message whose route may lead to very many queues."""
        fanout = None
        if _width(route) > MOST_QUEUES:
            fanout = self._fanout_of(action, route)
            yield from fanout.offers(step)
        self._journal.enter(step)
        try:
            if fanout is None:
                self._perform(action, route)
            else:
                fanout.finish()  # its archives get the message
                self._offered(action, fanout)
        finally:
            self._journal.leave()

    def _perform_some(self) -> None:
        """Perform some actions, up to one that cannot be performed in a turn with others."""
        work = 0
        while self._actions and work < _STEP:
            route = self._next_route()
            if isinstance(route, Walk) or _width(route) > MOST_QUEUES:
                self._route = route
                return
            work += max(1, _width(route))
            self._perform_next(route)

    def _perform_next(self, route: Route | Walk | None) -> None:
        assert not isinstance(route, Walk)  # a commit with a walk is not small
        self._perform(self._actions.popleft(), route)

    def _next_route(self) -> Route | Walk | None:
        """Return the route of the next action; called once for each."""
        return self._routes.popleft() if self._routes else self._find_route(self._actions[0])


def _width(route: Route | None) -> int:
    """Return the number of queues that an action offers a message to."""
    return 0 if route is None else len(route.queues)
