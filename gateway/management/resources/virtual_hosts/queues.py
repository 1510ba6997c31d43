"""/queues: the queues and their messages."""

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Final

from gateway.access import Operation
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.queueing.queue_operations import require_queue
from gateway.kernel.routing.binding import Binding
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.fetching import MessageFetch
from gateway.management.http.bodies import arguments, boolean, integer, require
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError, bad_request, missing
from gateway.management.http.listing import Listing, stream_list, with_columns_in_steps
from gateway.management.http.routes import LongTask, Reply, Routes, Streamed, put_reply
from gateway.management.permission_checks import require_declarable_queue
from gateway.management.views.queue_sorting import sort_value
from gateway.management.views.queues import detailed_view, list_item_view
from gateway.management.views.topology import binding_view, default_binding_view

routes = Routes()

#: Outcomes of fetched messages by ``ackmode``.
OUTCOMES: Final = {
    "ack_requeue_true": DeliveryOutcome.REQUEUED,
    "reject_requeue_true": DeliveryOutcome.REQUEUED,
    "ack_requeue_false": DeliveryOutcome.ACCEPTED,
    "reject_requeue_false": DeliveryOutcome.REJECTED,
}


@routes.get("/queues", "/queues/detailed")
def queues(call: Call) -> Listing[QueueLike]:
    """List the queues of all virtual hosts that the user may see."""
    return _listing(call, call.visible_vhosts())


@routes.get("/queues/<vhost>")
def in_vhost(call: Call, vhost: str) -> Listing[QueueLike]:
    """List the queues of a virtual host."""
    return _listing(call, [call.vhost(vhost)])


@routes.get("/queues/<vhost>/<name>")
def queue(call: Call, vhost: str, name: str) -> LongTask:
    """Return a queue with its consumers, its traffic by exchange and channel, and the sources of its settings."""
    return LongTask(with_columns_in_steps(detailed_view(call, _existing(call.vhost(vhost), name)), call.query))


@routes.put("/queues/<vhost>/<name>")
def put_queue(call: Call, vhost: str, name: str) -> Reply | LongTask:
    """Declare a queue, after a deletion in progress of one with this name."""
    virtual_host, fields = call.writable_vhost(vhost), call.fields
    node = fields.get("node", call.broker.node)
    if node != call.broker.node:
        raise bad_request(f"Node {node} could not be contacted")
    table = arguments(fields)
    require_declarable_queue(call, virtual_host, name, table)

    def declared() -> Reply:
        existed = name in virtual_host.queue_by_name
        virtual_host.declare_queue(
            name,
            is_durable=boolean(fields, "durable"),
            is_auto_delete=boolean(fields, "auto_delete"),
            arguments=table,
            user=call.principal.name,
        )
        return put_reply(existed)

    if virtual_host.queues.is_being_deleted(name):
        return LongTask(_after(virtual_host.queues.deletion_of(name), declared))
    return declared()


@routes.delete("/queues/<vhost>/<name>")
def delete_queue(call: Call, vhost: str, name: str) -> LongTask:
    """Delete a queue with its messages."""
    virtual_host = call.vhost(vhost)
    queue = permitted_queue(call, virtual_host, name, Operation.CONFIGURE)
    virtual_host.delete_queue(queue, if_unused=call.is_set("if-unused"), if_empty=call.is_set("if-empty"))
    return LongTask(_after(virtual_host.queues.deletion_of(name), lambda: None))


@routes.get("/queues/<vhost>/<name>/bindings")
def bindings(call: Call, vhost: str, name: str) -> Streamed:
    """List the bindings of a queue."""
    virtual_host = call.vhost(vhost)
    queue = _existing(virtual_host, name)
    found: list[Binding | QueueLike] = [queue, *virtual_host.bindings.to(queue)]
    return stream_list(
        found, lambda each: default_binding_view(each) if isinstance(each, QueueLike) else binding_view(each)
    )


@routes.delete("/queues/<vhost>/<name>/contents")
def purge(call: Call, vhost: str, name: str) -> None:
    """Delete the ready messages of a queue."""
    virtual_host = call.vhost(vhost)
    queue = require_queue(permitted_queue(call, virtual_host, name, Operation.READ), "queue.purge")
    call.broker.clock.background.add(virtual_host.queues.purging(queue))


@routes.post("/queues/<vhost>/<name>/get")
def fetch(call: Call, vhost: str, name: str) -> Streamed:
    """Fetch messages from the head of a queue, then settle them according to ``ackmode``."""
    fields = call.fields
    ackmode, count, encoding = require(fields, "ackmode", "count", "encoding")
    truncate = integer(fields.get("truncate", 0), "truncate")
    outcome = OUTCOMES.get(ackmode) if isinstance(ackmode, str) else None
    if outcome is None:
        raise bad_request(f"ackmode must be one of {', '.join(OUTCOMES)}")
    if encoding not in ("auto", "base64"):
        raise bad_request("Unsupported encoding. Please use auto or base64.")
    virtual_host = call.vhost(vhost)
    if name not in virtual_host.queue_by_name:
        raise HttpError(404, "not_found", f"NOT_FOUND - no queue '{name}' in vhost '{vhost}'")
    queue = permitted_queue(call, virtual_host, name, Operation.READ)
    source, most = require_queue(queue, "basic.get"), integer(count, "count")

    def shown(entry: QueuedMessage) -> Message:
        message = virtual_host.interception.delivered(source.shown(entry), name, call.origin)
        if virtual_host.tracing is not None:
            virtual_host.tracing.delivered(message, source, entry.is_redelivered, call.origin, entry)
        return message

    fetch = MessageFetch(source, shown, call.broker.clock, most, outcome, encoding, max(truncate, 0))
    return Streamed(fetch.pieces())


def _listing(call: Call, vhosts: list[VirtualHost]) -> Listing[QueueLike]:
    chosen = [queue for vhost in vhosts for queue in vhost.queue_by_name.values()]
    return Listing(
        chosen,
        lambda queue: list_item_view(call, queue),
        lambda queue: (queue.vhost_name, queue.name),
        sort_value=partial(sort_value, call),
    )


def _existing(vhost: VirtualHost, name: str) -> QueueLike:
    queue = vhost.queue_by_name.get(name)
    if queue is None:
        raise missing()
    return queue


def permitted_queue(call: Call, vhost: VirtualHost, name: str, operation: Operation) -> QueueLike:
    """Return a queue after checking a permission; exclusive queues are refused."""
    queue = _existing(vhost, name)
    call.permissions(vhost).require(operation, "queue", name)
    queue.require_owner(call)
    return queue


def _after(steps: Iterator[None], then: Callable[[], Reply | None]) -> "Generator[None, None, object]":
    """Run the steps, then return the result of ``then``."""
    for _ in steps:
        yield
    return then()
