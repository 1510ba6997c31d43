"""Streams that a user may read, with their offsets, for planning queries of Spark."""

import json
from collections.abc import Generator, Sequence
from typing import Final, TypeAlias

from gateway.access import Operation
from gateway.kernel.streams.stream import Stream
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError, bad_request
from gateway.management.http.ordering import sort_in_steps
from gateway.management.http.routes import Fields
from gateway.management.pipeline.refusals import access_refused, not_found
from gateway.management.super_streams import is_super_stream, partitions_of

Steps: TypeAlias = Generator[None, None, Fields]

MAX_INT64: Final = 2**63 - 1
"""The largest signed integer of 64 bits."""

#: Exchanges or queues that are looked at in one step.
_STEP: Final = 256

#: Maximum number of characters of a wrong value that an error quotes.
MAX_QUOTED: Final = 40


def require_readable_stream(call: Call, vhost: VirtualHost, name: str) -> Stream:
    """Return a stream that the user may read. :raises HttpError: if it is missing, no stream, or not readable."""
    queue = vhost.queue_by_name.get(name)
    if queue is None:
        raise not_found(f"no queue '{name}' in vhost '{vhost.name}'")
    if not isinstance(queue, Stream):
        raise bad_request(f"queue '{name}' in vhost '{vhost.name}' is not a stream")
    permissions = call.permissions(vhost)
    if not permissions.may(Operation.READ, name, "queue"):
        raise access_refused(permissions, Operation.READ, "queue", name)
    return queue


def named_streams(call: Call, vhost: VirtualHost, names: str) -> Steps:
    """Return the streams and super streams with these names, a JSON list. :raises HttpError: for an invalid one."""
    try:
        requested = json.loads(names)
    except (ValueError, RecursionError):
        requested = None
    if not isinstance(requested, list) or not all(isinstance(name, str) for name in requested):
        raise bad_request("'names' must be a JSON list of names")
    yield
    views = []
    for name in requested:
        views.append(_view(name, _parts(call, vhost, name)))
        yield
    return {"queues": views}


def readable_streams(call: Call, vhost: VirtualHost) -> Steps:
    """Return all streams and super streams that the user may read; partitions are also listed separately.

    Clients filter by pattern themselves: matching here would delay all other clients.
    """
    may_read = call.permissions(vhost).may
    found: dict[str, Sequence[Stream]] = {}
    for number, exchange in enumerate(list(vhost.exchange_by_name.values())):
        if is_super_stream(exchange):
            found[exchange.name] = partitions_of(vhost, exchange)
        if number % _STEP == 0:
            yield
    for number, queue in enumerate(list(vhost.queue_by_name.values())):
        if isinstance(queue, Stream):
            found[queue.name] = [queue]
        if number % _STEP == 0:
            yield
    views = []
    for name, parts in (yield from sort_in_steps(found.items(), lambda each: each[0])):
        if all(may_read(Operation.READ, part.name, "queue") for part in parts):
            views.append(_view(name, parts))
        yield
    return {"queues": views}


def _parts(call: Call, vhost: VirtualHost, name: str) -> Sequence[Stream]:
    """Return the partitions of a super stream, or the stream itself."""
    exchange = vhost.exchange_by_name.get(name)
    if exchange is None or not is_super_stream(exchange) or isinstance(vhost.queue_by_name.get(name), Stream):
        return [require_readable_stream(call, vhost, name)]
    return [require_readable_stream(call, vhost, part.name) for part in partitions_of(vhost, exchange)]


def _view(name: str, parts: Sequence[Stream]) -> Fields:
    return {"queue": name, "partitions": {str(number): _stream_view(part) for number, part in enumerate(parts)}}


def _stream_view(stream: Stream) -> Fields:
    return {
        "queue": stream.name,
        "incarnation": stream.incarnation,
        "first": stream.first_offset,
        "next": stream.durable_end,
        "bytes": stream.size_bytes,
    }


def offset_after(stream: Stream, offset: int, size_bytes: int) -> int:
    """Return the offset about ``size_bytes`` after another: exact for whole segments, else by mean size."""
    position = max(offset, stream.first_offset)
    for segment in stream.segments:
        end = min(segment.end, stream.durable_end)
        if end <= position or segment.end <= segment.first:
            continue
        count, mean = end - position, max(1, segment.size_bytes // (segment.end - segment.first))
        if size_bytes < count * mean:
            return position + size_bytes // mean
        size_bytes -= count * mean
        position = end
    return position


def whole_number(call: Call, name: str) -> int:
    """Return a number of the query. :raises HttpError: if it is missing or not from 0 to 2^63 - 1."""
    value = call.query.get(name, "")
    if is_number(value):
        return int(value)
    raise HttpError(
        400, "bad_request", f"'{name}' must be a whole number from 0 to 2^63 - 1, not '{value[:MAX_QUOTED]}'"
    )


def is_number(text: str) -> bool:
    """Return whether a text is a whole number from 0 to 2^63 - 1; Python refuses to parse very long ones."""
    return text.isascii() and text.isdigit() and len(text) <= len(str(MAX_INT64)) and int(text) <= MAX_INT64
