"""The publisher of dead letters of one virtual host: in the turn in which a message is dropped, and without cycles.

If that turn has published many, the message is dropped in a later one.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from gateway.kernel.archives.departures import TracedPlace
from gateway.kernel.events import Event
from gateway.kernel.messages.death_records import REJECTED, DeathReason, is_cycle
from gateway.kernel.routing.exchange import MOST_QUEUES
from gateway.kernel.routing.postponed_drops import Drop, PostponedDrops
from gateway.kernel.routing.sliced_fanout import SlicedFanout

if TYPE_CHECKING:
    from gateway.kernel.archives.trace_events import TraceEvents
    from gateway.kernel.events import Events
    from gateway.kernel.faults import Faults
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.journal.open_step import OpenStep
    from gateway.kernel.messages.message import Message, Value
    from gateway.kernel.queueing.consumer import ConsumedQueue
    from gateway.kernel.queueing.queue_like import QueueLike
    from gateway.kernel.routing.exchange import Exchange, Route
    from gateway.kernel.routing.router import Router
    from gateway.kernel.traffic import VhostTraffic

OnOffered: TypeAlias = "Callable[[Collection[ConsumedQueue] | None], None]"
"""Called after a dead letter was offered: with the queues that have it, or with ``None`` if no queue lacks it."""

_Letter: TypeAlias = "tuple[Message, DeathReason, list[Value], Collection[ConsumedQueue], OnOffered | None]"

#: Offers of dead letters to queues in one turn; further drops wait. Each takes one to four microseconds.
_MOST_OFFERS: Final = 1024

#: Known cycles, so that each is reported once; when it is full, the set is cleared.
_MOST_CYCLES: Final = 1000


class DeadLetters:
    """Publishes dead letters. A letter that causes another one is routed first, so that chains need no recursion.

    Dropping a message and publishing its dead letter are changes of one turn, so of one step of the store: a crash
    neither loses nor duplicates a dead letter. Drops for which a turn has no time are ``postponed``.
    """

    def __init__(
        self,
        vhost_name: str,
        exchange_by_name: "Mapping[str, Exchange]",
        queue_by_name: "Mapping[str, QueueLike]",
        router: "Router",
        journal: "Journal",
        events: "Events",
        faults: "Faults",
        traffic: "VhostTraffic",
    ) -> None:
        self._vhost_name = vhost_name
        self._exchange_by_name = exchange_by_name
        self._queue_by_name = queue_by_name
        self._router = router
        self._journal = journal
        self._events = events
        self._faults = faults
        self._traffic = traffic
        self.trace_events: TraceEvents | None = None
        self.postponed = PostponedDrops(journal, lambda error: faults.contain("drop", error, vhost=vhost_name))
        self._waiting: deque[_Letter] = deque()
        self._is_publishing = False
        self._cycles: set[tuple[str, str]] = set()

    def is_deliverable(self, exchange_name: str) -> bool:
        """Return whether the exchange exists; if not, the dead letter is dropped silently (R103)."""
        return exchange_name in self._exchange_by_name

    def postponer(self, exchange_name: str, routing_key: str, message: "Message") -> "Callable[[Drop], None] | None":
        """Return what postpones the drop of a message with this dead letter, or ``None`` to drop it now."""
        width = self._most_queues(exchange_name, routing_key)
        if width > MOST_QUEUES:
            return self.postpone_in_slices
        journal = self._journal
        if (
            self.postponed.are_waiting
            or (journal.lettered and journal.lettered + width > _MOST_OFFERS)
            or (journal.has_open_steps and journal.is_shared(message.id))  # its letter would not belong to that step
        ):
            return partial(self._postpone, message)
        journal.lettered += width
        return None

    def _most_queues(self, exchange_name: str, routing_key: str) -> int:
        """Return about the largest number of queues to which a dead letter may go."""
        if not exchange_name:
            return 1
        exchange = self._exchange_by_name.get(exchange_name)
        if exchange is None:
            return 0
        route = exchange.routes.get(routing_key)
        if route is not None:
            return len(route.queues)
        return MOST_QUEUES + 1 if exchange.has_long_routes else len(self._queue_by_name)

    def _postpone(self, message: "Message", drop: Drop) -> None:
        """Make a drop in a later turn, once the step is closed that the message belongs to."""
        self.postponed.add(partial(self._past_steps, message, self._journal.entered_step, drop))

    def _past_steps(self, message: "Message", step: "OpenStep | None", drop: Drop) -> Iterator[None] | None:
        """Make a drop, or return the steps of one that has to wait, for ``step`` or another one."""
        if self._has_to_wait(message, step):
            return self._waiting_for_steps(message, step, drop)
        return drop()

    def _waiting_for_steps(self, message: "Message", step: "OpenStep | None", drop: Drop) -> Iterator[None]:
        while self._has_to_wait(message, step):
            yield
        yield from drop() or ()

    def _has_to_wait(self, message: "Message", step: "OpenStep | None") -> bool:
        return (step is not None and step.is_open) or self._journal.is_shared(message.id)

    def postpone_in_slices(self, drop: Drop) -> None:
        """Make a drop in later turns, as one step of the store, once no other step is open."""
        self.postponed.add(partial(self._in_slices, drop))

    def count(self, queue_type: str, strategy: str, reason: str) -> None:
        """Count a dead letter of a queue, with the strategy ``at_most_once`` or ``at_least_once``."""
        self._traffic.dead_letters[queue_type, strategy, reason] += 1

    def publish(
        self,
        letter: "Message",
        reason: DeathReason,
        deaths: "list[Value]",
        takers: "Collection[ConsumedQueue]" = (),
        on_offered: "OnOffered | None" = None,
    ) -> None:
        """Publish a dead letter, after those that are being published.

        ``deaths`` are those that its headers show, which are not decoded for that. ``takers`` are queues that already
        have it. A queue lacks it if it rejected it; so does the broker if its exchange does not exist, or if it has no
        route.
        """
        if self._is_publishing:
            self._waiting.append((letter, reason, deaths, takers, on_offered))
            return
        self._is_publishing = True
        try:
            self._route(letter, reason, deaths, takers, on_offered)
            while self._waiting:
                self._route(*self._waiting.popleft())
        finally:
            self._is_publishing = False

    def _route(
        self,
        letter: "Message",
        reason: DeathReason,
        deaths: "list[Value]",
        takers: "Collection[ConsumedQueue]",
        on_offered: "OnOffered | None",
    ) -> None:
        exchange = self._exchange_by_name.get(letter.exchange)
        if exchange is None:
            if on_offered is not None:
                on_offered(takers)
            return
        causes = self._causes(letter, reason, deaths)
        route = self._router.route(exchange, letter)
        route.count += 1
        self._journal.budget.work += len(route.queues)
        if on_offered is None and not takers:  # most letters: no record of the queues that have it is needed
            for queue in route.queues:
                self._take_in(causes, queue, letter)
            self._finish(route, None, letter, None)
            return
        have_it, is_complete = _as_set(takers), True
        for queue in route.queues:
            is_complete &= self._take_in_once(causes, have_it, queue, letter)
        self._finish(route, None if is_complete else have_it, letter, on_offered)

    def _in_slices(self, drop: Drop) -> Iterator[None]:
        """Return the steps of a drop whose dead letter may go to very many queues; they are one step of the store.

        While another step is open that the dropped message may belong to, a crash could keep the letter and the
        message, or lose both.
        """
        journal = self._journal
        while journal.has_open_steps:
            yield
        step = journal.open_step()
        try:
            self._drop_into(step, drop)
        except BaseException:
            journal.close_step(step)  # an open one would hold up all later drops of this kind
            raise
        letter = self._waiting.popleft() if self._waiting else None
        exchange = None if letter is None else self._exchange_by_name.get(letter[0].exchange)
        if letter is not None and exchange is not None:
            yield from self._offers(exchange, step, *letter)
            return
        journal.close_step(step)
        if letter is not None:
            self._route(*letter)

    def _drop_into(self, step: "OpenStep", drop: Drop) -> None:
        """Make a drop whose changes belong to a step of the store; its dead letter waits."""
        self._journal.enter(step)
        self._is_publishing = True
        try:
            drop()
        finally:
            self._is_publishing = False
            self._journal.leave()

    def _offers(
        self,
        exchange: "Exchange",
        step: "OpenStep",
        letter: "Message",
        reason: DeathReason,
        deaths: "list[Value]",
        takers: "Collection[ConsumedQueue]",
        on_offered: "OnOffered | None",
    ) -> Iterator[None]:
        """Return the steps that offer a dead letter to the queues of its route, and close the step of the store."""
        have_it = _as_set(takers)
        try:
            offer = partial(self._take_in_once, self._causes(letter, reason, deaths), have_it)
            fanout = SlicedFanout(self._router.find(exchange, letter), letter, self._journal, self._router, offer)
            yield from fanout.steps(step)
        except Exception:
            if on_offered is not None:
                on_offered(have_it)
            raise
        assert fanout.route is not None
        self._finish(fanout.route, have_it if fanout.is_refused else None, letter, on_offered)

    @property
    def _traced(self) -> "TraceEvents | None":
        """The trace events, while they are on."""
        return self.trace_events if self.trace_events is not None and self.trace_events.is_on else None

    def _causes(self, letter: "Message", reason: DeathReason, deaths: "list[Value]") -> "list[Value]":
        """Trace a dead letter, and return the deaths that may make it part of a cycle."""
        if (traced := self._traced) is not None:
            traced.dead_lettered(letter, reason)
        return [] if reason is REJECTED else deaths

    def _take_in(self, causes: "list[Value]", queue: "QueueLike", letter: "Message") -> bool:
        """Offer a dead letter to a queue, unless that closes a cycle; return whether it needs no further offer."""
        if causes and is_cycle(causes, queue.name):
            self._report_cycle(letter.exchange, queue)
            if (traced := self._traced) is not None:
                traced.kept_out(TracedPlace(queue.name), letter, "cycle")
            return True
        return self._offer(queue, letter)

    def _take_in_once(
        self, causes: "list[Value]", have_it: "set[ConsumedQueue]", queue: "QueueLike", letter: "Message"
    ) -> bool:
        """Offer a dead letter to a queue that does not have it; return whether it needs no further offer."""
        if queue in have_it:
            return True
        if not self._take_in(causes, queue, letter):
            return False
        have_it.add(queue)
        return True

    def _finish(
        self,
        route: "Route",
        takers: "Collection[ConsumedQueue] | None",
        letter: "Message",
        on_offered: "OnOffered | None",
    ) -> None:
        """Archive a dead letter that was offered to all queues of its route, and trace one without a queue.

        ``takers`` are the queues that have it, ``None`` if all do.
        """
        if not route.queues and (traced := self._traced) is not None:
            traced.kept_out(TracedPlace(), letter, "unroutable")
        for archive in route.archives:
            archive.keep(letter)
        if on_offered is not None:
            if not (route.queues or route.archives):
                takers = ()
            if takers is None:
                self.count("quorum", "at_least_once", "confirmed")  # no other queue type has this strategy
            on_offered(takers)
        if letter.id:
            self._journal.store_indirectly()

    def _offer(self, queue: "QueueLike", letter: "Message") -> bool:
        """Offer a dead letter to a queue and return whether it was accepted; contain an exception."""
        try:
            return queue.offer(letter) is None
        except Exception as error:  # an exception must not interrupt the queue that drops the message
            self._faults.contain("dead letter", error, vhost=self._vhost_name, subject=queue.name)
            return False

    def _report_cycle(self, exchange_name: str, queue: "QueueLike") -> None:
        """Report a dead-letter cycle once; messages are dropped where it closes."""
        if (exchange_name, queue.name) in self._cycles:
            return
        if len(self._cycles) >= _MOST_CYCLES:
            self._cycles.clear()
        self._cycles.add((exchange_name, queue.name))
        self._events.emit(Event("dead_letter.cycle", self._vhost_name, queue.name, details={"exchange": exchange_name}))


def _as_set(takers: "Collection[ConsumedQueue]") -> "set[ConsumedQueue]":
    """Return the queues that have a letter as a set, which offers extend: a copy of 100,000 takes milliseconds."""
    return takers if isinstance(takers, set) else set(takers)
