"""/queues/.../delayed and /exchanges/.../delayed: delayed messages. RabbitMQ has no such resource."""

from collections.abc import Generator

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

_OF_QUEUE = "/queues/<vhost>/<name>/delayed"
_OF_EXCHANGE = "/exchanges/<vhost>/<name>/delayed"

#: Bytes of each body in a list, by default and at most.
_SHOWN = 1024
_MAX_SHOWN = 64 * 1024


@routes.get(_OF_QUEUE)
def of_queue(call: Call, vhost: str, name: str) -> Streamed:
    """List the delayed messages of a queue, the earliest first."""
    return _page(call, _delays_of_queue(call, vhost, name))


@routes.delete(_OF_QUEUE)
def cancel_all_of_queue(call: Call, vhost: str, name: str) -> None:
    """Delete all delayed messages of a queue."""
    _clear(call.vhost(vhost), _delays_of_queue(call, vhost, name), TracedPlace(queue=name))


@routes.delete(f"{_OF_QUEUE}/<position>")
def cancel_in_queue(call: Call, vhost: str, name: str, position: str) -> LongTask:
    """Delete one delayed message of a queue."""
    delays = _delays_of_queue(call, vhost, name)
    return LongTask(_cancelled(call.vhost(vhost), delays, TracedPlace(queue=name), position))


@routes.get(_OF_EXCHANGE)
def of_exchange(call: Call, vhost: str, name: str) -> Streamed:
    """List the delayed messages of an exchange, the earliest first."""
    return _page(call, _delays_of_exchange(call, vhost, name))


@routes.delete(_OF_EXCHANGE)
def cancel_all_of_exchange(call: Call, vhost: str, name: str) -> None:
    """Delete all delayed messages of an exchange."""
    _clear(call.vhost(vhost), _delays_of_exchange(call, vhost, name), TracedPlace(exchange=name))


@routes.delete(f"{_OF_EXCHANGE}/<position>")
def cancel_in_exchange(call: Call, vhost: str, name: str, position: str) -> LongTask:
    """Delete one delayed message of an exchange."""
    delays = _delays_of_exchange(call, vhost, name)
    return LongTask(_cancelled(call.vhost(vhost), delays, TracedPlace(exchange=name), position))


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
