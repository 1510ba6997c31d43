"""/queues/.../delayed and /exchanges/.../delayed: delayed messages. RabbitMQ has no such resource."""

from collections.abc import Callable, Generator
from dataclasses import dataclass

from gateway.access import Operation
from gateway.kernel.archives.departures import TracedPlace
from gateway.kernel.backlog.delay_index import DelayedMessage, DelayIndex
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.bodies import digits, integer
from gateway.management.http.call import Call
from gateway.management.http.errors import missing
from gateway.management.http.listing import Items, Page
from gateway.management.http.routes import Fields, LongTask, Routes, Streamed
from gateway.management.messages import content_view
from gateway.management.resources.virtual_hosts.exchanges import existing_exchange
from gateway.management.resources.virtual_hosts.queues import permitted_queue
from gateway.management.views.json import encode
from gateway.management.views.times import timestamp

routes = Routes()

#: Bytes of each body in a list, by default and at most.
_SHOWN = 1024
_MAX_SHOWN = 64 * 1024


@dataclass(frozen=True, slots=True)
class DelayedRoutes:
    """The routes of the delayed messages of queues, or of exchanges. ``noun`` names the owner in the summaries."""

    path: str
    noun: str
    delays_of: Callable[[Call, str, str], DelayIndex | None]
    place_of: Callable[[str], TracedPlace]

    def declare(self, routes: Routes) -> None:
        """Add the routes."""

        def list_all(call: Call, vhost: str, name: str) -> Streamed:
            return _page(call, self.delays_of(call, vhost, name))

        def cancel_all(call: Call, vhost: str, name: str) -> None:
            _clear(call.vhost(vhost), self.delays_of(call, vhost, name), self.place_of(name))

        def cancel(call: Call, vhost: str, name: str, position: str) -> LongTask:
            delays = self.delays_of(call, vhost, name)
            return LongTask(_cancelled(call.vhost(vhost), delays, self.place_of(name), position))

        list_all.__doc__ = f"List the delayed messages of {self.noun}, the earliest first."
        cancel_all.__doc__ = f"Delete all delayed messages of {self.noun}."
        cancel.__doc__ = f"Delete one delayed message of {self.noun}."
        routes.get(self.path)(list_all)
        routes.delete(self.path)(cancel_all)
        routes.delete(f"{self.path}/<position>")(cancel)


def _delays_of_queue(call: Call, vhost: str, name: str) -> DelayIndex | None:
    """Return the delayed messages of a queue; access needs the read permission, as for a purge."""
    return _delays(permitted_queue(call, call.vhost(vhost), name, Operation.READ))


def _delays_of_exchange(call: Call, vhost: str, name: str) -> DelayIndex | None:
    """Return the delayed messages of an exchange; access needs the read permission."""
    virtual_host = call.vhost(vhost)
    exchange = existing_exchange(virtual_host, name)
    call.permissions(virtual_host).require(Operation.READ, "exchange", exchange.name)
    waiting = exchange.interceptor.waiting if exchange.interceptor is not None else None
    return None if waiting is None else _delays(waiting)


def _delays(queue: QueueLike) -> DelayIndex | None:
    return queue.delayed.delays if isinstance(queue, Queue) and queue.delayed is not None else None


def _page(call: Call, delays: DelayIndex | None) -> Streamed:
    """Return a page, by default the first: there may be a million messages."""
    page = Page.of({"page": "1", **call.query})
    assert page is not None
    truncate = min(max(integer(call.query.get("truncate", _SHOWN), "truncate"), 0), _MAX_SHOWN)
    total = len(delays) if delays is not None else 0
    return Streamed(page.written(_written(delays, page.first_of(total), page.size, truncate), total, total))


def _written(delays: DelayIndex | None, first: int, count: int, truncate: int) -> Items:
    """Yield the messages of a page, encoded one at a time: they may be large. Return their number."""
    written = 0
    for delayed in delays.listing(first, count) if delays is not None else ():
        if delayed is not None:
            yield (b"," if written else b"") + encode(_view(delayed, truncate))
            written += 1
        else:
            yield None
    return written


def _view(delayed: DelayedMessage, truncate: int) -> Fields:
    """Return a message and its due time; ``position`` identifies it for a deletion."""
    times = {"position": delayed.position, "due_at": timestamp(delayed.due_at_ms), "due_at_ms": delayed.due_at_ms}
    return times | content_view(delayed.message, "auto", delayed.message.body[:truncate])


def _clear(vhost: VirtualHost, delays: DelayIndex | None, place: TracedPlace) -> None:
    if delays is not None:
        delays.clear()
        vhost.trace_events.left(place, "cancelled")


def _cancelled(
    vhost: VirtualHost, delays: DelayIndex | None, place: TracedPlace, position: str
) -> Generator[None, None, None]:
    number = digits(position)
    if delays is None or number is None or not (yield from delays.cancel(number)):
        raise missing()
    vhost.trace_events.cancelled(place, number)


DelayedRoutes(
    "/queues/<vhost>/<name>/delayed", "a queue", _delays_of_queue, lambda name: TracedPlace(queue=name)
).declare(routes)
DelayedRoutes(
    "/exchanges/<vhost>/<name>/delayed", "an exchange", _delays_of_exchange, lambda name: TracedPlace(exchange=name)
).declare(routes)
