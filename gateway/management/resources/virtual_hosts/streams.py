"""/stream: the consumers of streams, and their stored offsets."""

from typing import Final

from gateway.access import Operation
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.streams.requests import LONGEST_NAME
from gateway.kernel.streams.stream import Stream
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.bodies import integer, require
from gateway.management.http.call import Call
from gateway.management.http.errors import missing
from gateway.management.http.listing import Listing
from gateway.management.http.routes import Fields, Reply, Routes, put_reply
from gateway.management.resources.virtual_hosts.queues import permitted_queue
from gateway.management.views.queues import list_item_view
from gateway.management.views.streams import stream_consumer_view, tracked_view, tracking_view

routes = Routes()

_TRACKING: Final = "/stream/<vhost>/<name>/tracking"

#: Largest offset that a message header can contain.
_MAX_OFFSET: Final = 2**63 - 1


@routes.get("/stream/connections", "/stream/publishers")
def no_connections(call: Call) -> list[Fields]:
    """List the clients of RabbitMQ's stream protocol: none, it is not supported."""
    return []


@routes.get("/stream/connections/<vhost>", "/stream/publishers/<vhost>")
def no_connections_in_vhost(call: Call, vhost: str) -> list[Fields]:
    """List the clients of RabbitMQ's stream protocol in a virtual host: none, it is not supported."""
    call.vhost(vhost)
    return []


@routes.get("/stream/publishers/<vhost>/<name>")
def no_publishers_of_stream(call: Call, vhost: str, name: str) -> list[Fields]:
    """List the publishers of RabbitMQ's stream protocol to a stream: none, it is not supported."""
    _existing(call.vhost(vhost), name)
    return []


@routes.get("/streams")
def streams(call: Call) -> Listing[Stream]:
    """List the streams of all virtual hosts that the user may see, as the list of queues does."""
    return _stream_listing(call, call.visible_vhosts())


@routes.get("/streams/<vhost>")
def streams_in_vhost(call: Call, vhost: str) -> Listing[Stream]:
    """List the streams of a virtual host."""
    return _stream_listing(call, [call.vhost(vhost)])


@routes.get("/stream/consumers")
def consumers(call: Call) -> Listing[tuple[Stream, Consumer]]:
    """List the consumers of streams in all virtual hosts that the user may see."""
    return _listing(call, call.visible_vhosts())


@routes.get("/stream/consumers/<vhost>")
def consumers_in_vhost(call: Call, vhost: str) -> Listing[tuple[Stream, Consumer]]:
    """List the consumers of streams in a virtual host."""
    return _listing(call, [call.vhost(vhost)])


@routes.get(_TRACKING)
def tracking(call: Call, vhost: str, name: str) -> Fields:
    """Return the stored offsets of a stream."""
    return tracking_view(_existing(call.vhost(vhost), name))


@routes.get(f"{_TRACKING}/<consumer>")
def tracked(call: Call, vhost: str, name: str, consumer: str) -> Fields:
    """Return the stored offset of a consumer."""
    stream = _existing(call.vhost(vhost), name)
    if consumer not in stream.offsets:
        raise missing()
    return tracked_view(stream, consumer)


@routes.put(f"{_TRACKING}/<consumer>")
def store(call: Call, vhost: str, name: str, consumer: str) -> Reply:
    """Store the offset of a consumer: that of the last message it has processed."""
    stream = _permitted_stream(call, vhost, name)
    (value,) = require(call.fields, "offset")
    offset = integer(value, "offset")
    if not 0 <= offset <= _MAX_OFFSET:
        raise PreconditionFailed(f"offset {offset} is out of range: it must be from 0 to 2^63 - 1")
    if not 0 < len(consumer.encode()) <= LONGEST_NAME:
        raise PreconditionFailed(f"the name of a consumer must have 1 to {LONGEST_NAME} bytes")
    existed = consumer in stream.offsets
    stream.store_offset(consumer, offset)
    return put_reply(existed)


@routes.delete(f"{_TRACKING}/<consumer>")
def forget(call: Call, vhost: str, name: str, consumer: str) -> None:
    """Delete the stored offset of a consumer."""
    if not _permitted_stream(call, vhost, name).forget_offset(consumer):
        raise missing()


def _existing(vhost: VirtualHost, name: str) -> Stream:
    stream = vhost.queue_by_name.get(name)
    if not isinstance(stream, Stream):
        raise missing()
    return stream


def _permitted_stream(call: Call, vhost: str, name: str) -> Stream:
    """Return a stream that the user may read, which is the permission to change offsets."""
    virtual_host = call.vhost(vhost)
    stream = _existing(virtual_host, name)
    permitted_queue(call, virtual_host, name, Operation.READ)
    return stream


def _stream_listing(call: Call, vhosts: list[VirtualHost]) -> Listing[Stream]:
    found = [queue for vhost in vhosts for queue in vhost.queue_by_name.values() if isinstance(queue, Stream)]
    return Listing(found, lambda stream: list_item_view(call, stream), lambda each: (each.vhost_name, each.name))


def _listing(call: Call, vhosts: list[VirtualHost]) -> Listing[tuple[Stream, Consumer]]:
    streams = [queue for vhost in vhosts for queue in vhost.queue_by_name.values() if isinstance(queue, Stream)]
    return Listing(
        [(stream, consumer) for stream in streams for consumer in stream.consumers],
        lambda each: stream_consumer_view(call, *each),
        lambda each: (each[0].vhost_name, each[0].name),
        is_paged=False,
    )
