"""The publisher of dead letters of one virtual host: in the turn in which a message is dropped, and without cycles."""

from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

from gateway.kernel.archives.departures import TracedPlace
from gateway.kernel.events import Event
from gateway.kernel.messages.death_records import DeathReason, deaths_of, is_cycle

if TYPE_CHECKING:
    from gateway.kernel.archives.trace_events import TraceEvents
    from gateway.kernel.events import Events
    from gateway.kernel.faults import Faults
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.message import Message
    from gateway.kernel.queueing.consumer import ConsumedQueue
    from gateway.kernel.queueing.queue_like import QueueLike
    from gateway.kernel.routing.exchange import Exchange
    from gateway.kernel.routing.router import Router

OnIncomplete: TypeAlias = "Callable[[Collection[ConsumedQueue]], None]"
"""Called with the queues that have a dead letter, when some of its queues do not."""

#: Known cycles, so that each is reported once; when it is full, the set is cleared.
_MOST_CYCLES: Final = 1000


class DeadLetters:
    """Publishes dead letters. A letter that causes another one is routed first, so that chains need no recursion.

    Dropping a message and publishing its dead letter are changes of one turn, so of one step of the store: a crash
    neither loses nor duplicates a dead letter.
    """

    def __init__(
        self,
        vhost_name: str,
        exchange_by_name: "Mapping[str, Exchange]",
        router: "Router",
        journal: "Journal",
        events: "Events",
        faults: "Faults",
    ) -> None:
        self._vhost_name = vhost_name
        self._exchange_by_name = exchange_by_name
        self._router = router
        self._journal = journal
        self._events = events
        self._faults = faults
        self.trace_events: TraceEvents | None = None
        self._waiting: deque[tuple[Message, DeathReason, Collection[ConsumedQueue], OnIncomplete | None]] = deque()
        self._is_publishing = False
        self._cycles: set[tuple[str, str]] = set()

    def is_deliverable(self, exchange_name: str) -> bool:
        """Return whether the exchange exists; if not, the dead letter is dropped silently (R103)."""
        return exchange_name in self._exchange_by_name

    def publish(
        self,
        letter: "Message",
        reason: DeathReason,
        takers: "Collection[ConsumedQueue]" = (),
        on_incomplete: "OnIncomplete | None" = None,
    ) -> None:
        """Publish a dead letter, after those that are being published.

        ``takers`` are queues that already have it. ``on_incomplete`` is called with all queues that have it when some
        queue does not: its exchange does not exist, it has no route, or a queue rejected it.
        """
        self._waiting.append((letter, reason, takers, on_incomplete))
        if self._is_publishing:
            return
        self._is_publishing = True
        try:
            while self._waiting:
                self._route(*self._waiting.popleft())
        finally:
            self._is_publishing = False

    def _route(
        self,
        letter: "Message",
        reason: DeathReason,
        takers: "Collection[ConsumedQueue]",
        on_incomplete: "OnIncomplete | None",
    ) -> None:
        exchange = self._exchange_by_name.get(letter.exchange)
        if exchange is None:
            if on_incomplete is not None:
                on_incomplete(takers)
            return
        deaths = () if reason is DeathReason.REJECTED else deaths_of(letter.headers)
        route = self._router.route(exchange, letter)
        traced = self.trace_events if self.trace_events is not None and self.trace_events.is_on else None
        if traced is not None:
            traced.dead_lettered(letter, reason)
            if not route.queues:
                traced.kept_out(TracedPlace(), letter, "unroutable")
        route.count += 1
        have_it: set[ConsumedQueue] = {*takers}
        for queue in route.queues:
            if queue in have_it:
                continue
            if deaths and is_cycle(deaths, queue.name):
                self._report_cycle(letter.exchange, queue)
                if traced is not None:
                    traced.kept_out(TracedPlace(queue.name), letter, "cycle")
                have_it.add(queue)
            elif self._offer(queue, letter):
                have_it.add(queue)
        for archive in route.archives:
            archive.keep(letter)
        is_routed = bool(route.queues or route.archives)
        if on_incomplete is not None and not (is_routed and have_it.issuperset(route.queues)):
            on_incomplete(have_it)
        if letter.id:
            self._journal.indirect_lsn = self._journal.lsn

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
