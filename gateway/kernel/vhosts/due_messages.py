"""Messages whose delay in an exchange is over: routed at once, or in slices to very many queues."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gateway.kernel.archives.departures import TracedPlace
from gateway.kernel.features.keeping import KeepingInterceptor
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.routing.exchange import MOST_QUEUES
from gateway.kernel.routing.router import Walk
from gateway.kernel.routing.sliced_fanout import SlicedFanout

if TYPE_CHECKING:
    from gateway.kernel.messages.message import Message
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.queue import Queue
    from gateway.kernel.queueing.queue_like import QueueLike
    from gateway.kernel.routing.exchange import Exchange, Route
    from gateway.kernel.vhosts.context import VhostContext


class DueMessages:
    """Routes the delayed messages of one exchange when they are due.

    A message is routed and leaves the exchange in one step of the store, so a crash neither loses nor duplicates it.
    While one is offered to very many queues, the others wait.
    """

    def __init__(self, exchange: "Exchange", context: "VhostContext") -> None:
        self._exchange = exchange
        self._context = context
        self._is_routing = False

    def route(self, held: "Queue", entry: "QueuedMessage") -> DeathReason | None:
        """Route a message of ``held``, the queue of the exchange's delayed ones, or return why it has to wait on."""
        if self._is_routing or self._exchange.inert_reason:
            return DeathReason.MAXLEN  # as if all queues were full
        if isinstance(self._exchange.interceptor, KeepingInterceptor):
            self._exchange.interceptor.keep(entry.message)
        found = self._context.router.find_past_interceptor(self._exchange, entry.message)
        if _is_wide(found):
            self._is_routing = True
            self._context.journal.clock.background.add_later(self._in_slices(found, held, entry))
            return None
        route = self._context.router.completed(found)
        self._trace(route, entry)  # before the queues take it: a trace is in the order of what happens
        for queue in route.queues:
            queue.offer_due(entry.message)
        held.forget(entry)
        self._archive(route, entry)
        return None

    def _in_slices(self, found: "Route | Walk", held: "Queue", entry: "QueuedMessage") -> Iterator[None]:
        """Return the steps that offer a message to very many queues, and remove it from the exchange."""
        journal = self._context.journal
        fanout = SlicedFanout(found, entry.message, journal, self._context.router, self._offer)
        try:
            while journal.has_open_steps:  # the message may belong to another one
                yield
            step = journal.open_step()
            journal.enter(step)
            held.forget(entry)
            journal.leave()
            yield from fanout.steps(step)
        finally:
            self._is_routing = False
        assert fanout.route is not None
        self._trace(fanout.route, entry)
        self._archive(fanout.route, entry)

    def _offer(self, queue: "QueueLike", message: "Message") -> bool:
        """Offer a message to a queue; contain an exception, so that the other queues get it."""
        try:
            queue.offer_due(message)
        except Exception as error:
            self._context.faults.contain("offer", error, vhost=self._context.vhost_name, subject=queue.name)
            return False
        return True

    def _trace(self, route: "Route", entry: "QueuedMessage") -> None:
        place = TracedPlace(exchange=self._exchange.name)
        self._context.trace_events.due(place, entry.message, entry.position, route.queues)

    def _archive(self, route: "Route", entry: "QueuedMessage") -> None:
        for archive in route.archives:
            if archive is not self._exchange.archive:  # which took it when it arrived
                archive.keep(entry.message)


def _is_wide(found: "Route | Walk") -> bool:
    return isinstance(found, Walk) or len(found.queues) > MOST_QUEUES
