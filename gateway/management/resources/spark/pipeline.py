"""/pipeline: streams for queries of Spark, and the progress of its consumers."""

from collections.abc import Mapping
from typing import Any, Final

from twisted.internet.defer import Deferred, succeed

from gateway.access import Operation
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.downloads import Download
from gateway.management.http.errors import bad_request
from gateway.management.http.routes import Fields, LongTask, Routes
from gateway.management.pipeline.progress import MAX_CONSUMER_NAME, MAX_PARTITIONS, Position, Report, lag_view
from gateway.management.pipeline.reading import ReadRange
from gateway.management.pipeline.refusals import access_refused, not_found, stream_recreated
from gateway.management.pipeline.streams import (
    MAX_INT64,
    is_number,
    named_streams,
    offset_after,
    readable_streams,
    require_readable_stream,
    whole_number,
)
from gateway.management.pipeline.vouched_range import (
    OFFERED_COPIES,
    VOUCHED,
    VouchedRange,
    encode_vouched,
    parse_offer,
)
from gateway.management.super_streams import partitions_of
from gateway.management.views.times import timestamp

routes = Routes()

#: Maximum number of characters of a stream's incarnation in a report.
MAX_INCARNATION: Final = 64


@routes.get("/pipeline/<vhost>/streams", level=AccessLevel.USER)
def streams(call: Call, vhost: str) -> LongTask:
    """Return the offsets of streams: those in ``names``, or all that the user may read."""
    virtual_host = call.accessible_vhost(vhost)
    if "names" in call.query:
        return LongTask(named_streams(call, virtual_host, call.query["names"]))
    if "pattern" in call.query:
        raise bad_request(
            "'pattern' is not supported: filter the list of all streams, which is returned without 'names'"
        )
    return LongTask(readable_streams(call, virtual_host))


@routes.get("/pipeline/<vhost>/offset", level=AccessLevel.USER)
def offset(call: Call, vhost: str) -> Fields:
    """Return the offset of the first message at or after a time (ms), or that ``bytes`` after another offset."""
    stream = require_readable_stream(call, call.accessible_vhost(vhost), call.query.get("queue", ""))
    if "timestamp" in call.query:
        return {"offset": stream.offset_at(whole_number(call, "timestamp"))}
    return {"offset": offset_after(stream, whole_number(call, "offset"), whole_number(call, "bytes"))}


@routes.get("/pipeline/<vhost>/read", level=AccessLevel.USER)
def read(call: Call, vhost: str) -> "Deferred[Download]":
    """Return messages in Arrow's stream format; with ``incarnation`` only those of that stream.

    A node of the cluster that offers a fit copy gets the range that may be read there.
    """
    stream = require_readable_stream(call, call.accessible_vhost(vhost), call.query.get("queue", ""))
    read_range = ReadRange(stream, whole_number(call, "from"), whole_number(call, "to"))
    if call.query.get("incarnation", stream.incarnation) != stream.incarnation:
        raise stream_recreated(stream.name, stream.incarnation)
    place = call.context.log_place
    if place is not None and place in parse_offer(call.headers.get(OFFERED_COPIES, "")):
        read_range.require_there()
        bounds = stream.log.id, stream.first_offset, stream.durable_end
        vouched = VouchedRange(place, stream.vhost_name, stream.name, *bounds)
        return succeed(Download.of_bytes(encode_vouched(vouched), {"Content-Type": VOUCHED}))
    return call.context.pipeline.reading.read(read_range)


# Progress of consumers


@routes.put("/pipeline/<vhost>/progress/<consumer>", level=AccessLevel.USER)
def report(call: Call, vhost: str, consumer: str) -> None:
    """Store the progress of a consumer: ``{"offsets": {"orders": {"0": 500}}}``.

    ``{"next": 500, "incarnation": "..."}`` in place of the number also names the stream that was read.
    """
    virtual_host = call.accessible_vhost(vhost)
    offsets = _offsets(call.fields.get("offsets"))
    if not 0 < len(consumer.encode()) <= MAX_CONSUMER_NAME:
        raise bad_request(f"the name of a consumer must have 1 to {MAX_CONSUMER_NAME} bytes")
    _require_own_consumer(call, virtual_host, consumer)
    for queue in offsets:
        _require_readable(call, virtual_host, queue)
    now_ms = call.broker.clock.wall_ms()
    call.context.pipeline.progress.report(virtual_host.name, consumer, Report(offsets, now_ms, call.principal.name))


@routes.get("/pipeline/<vhost>/progress", level=AccessLevel.USER)
def progress(call: Call, vhost: str) -> list[Fields]:
    """List the consumers and their lags in the streams that the user may read."""
    virtual_host = call.accessible_vhost(vhost)
    return [
        {
            "consumer": name,
            "vhost": virtual_host.name,
            "user": each.user,
            "reported_at": timestamp(each.reported_at_ms),
            "partitions": _partitions(call, virtual_host, each),
        }
        for name, each in call.context.pipeline.progress.of(virtual_host.name)
    ]


@routes.delete("/pipeline/<vhost>/progress/<consumer>", level=AccessLevel.USER)
def forget(call: Call, vhost: str, consumer: str) -> None:
    """Delete the progress of a consumer; its next report restores it."""
    virtual_host = call.accessible_vhost(vhost)
    _require_own_consumer(call, virtual_host, consumer)
    if not call.context.pipeline.progress.forget(virtual_host.name, consumer):
        raise not_found(f"no consumer '{consumer}' in vhost '{vhost}'")


def _require_own_consumer(call: Call, vhost: VirtualHost, consumer: str) -> None:
    """Check that a consumer belongs to the user or the user may monitor. :raises HttpError: if not."""
    reporter = call.context.pipeline.progress.reporter(vhost.name, consumer)
    if reporter not in (None, call.principal.name):
        call.require(AccessLevel.MONITORING)


def _require_readable(call: Call, vhost: VirtualHost, queue: str) -> None:
    """Check that the user may read a stream or one of its partitions. :raises HttpError: if not."""
    permissions, exchange = call.permissions(vhost), vhost.exchange_by_name.get(queue)
    if permissions.may(Operation.READ, queue, "queue"):
        return
    parts = [] if exchange is None or queue in vhost.queue_by_name else partitions_of(vhost, exchange)
    if not any(permissions.may(Operation.READ, part.name, "queue") for part in parts):
        raise access_refused(permissions, Operation.READ, "queue", queue)


def _partitions(call: Call, vhost: VirtualHost, report: Report) -> list[Fields]:
    may_read = call.permissions(vhost).may
    views = []
    for queue, partitions in report.offsets.items():
        exchange = vhost.exchange_by_name.get(queue)
        parts = [] if exchange is None or queue in vhost.queue_by_name else partitions_of(vhost, exchange)
        for number, position in partitions.items():
            name = parts[int(number)].name if int(number) < len(parts) else queue
            if may_read(Operation.READ, name, "queue"):
                views.append(lag_view(vhost, queue, number, name, position))
    return views


def _offsets(given: Any) -> Mapping[str, Mapping[str, Position]]:
    """Parse offsets by partition by queue. :raises HttpError: if they are malformed."""
    if not isinstance(given, dict) or not all(isinstance(partitions, dict) for partitions in given.values()):
        raise bad_request("'offsets' must be an object of queues, each an object of partitions and their offsets")
    entries = [(number, offset) for partitions in given.values() for number, offset in partitions.items()]
    if len(entries) > MAX_PARTITIONS or len(given) > MAX_PARTITIONS:
        raise bad_request(f"'offsets' has more than {MAX_PARTITIONS} partitions")
    if not all(_is_offset(number, offset) for number, offset in entries):
        raise bad_request("'offsets' must be an object of queues, each an object of partitions and their offsets")
    return {
        queue: {number: _position(each) for number, each in partitions.items()} for queue, partitions in given.items()
    }


def _position(given: Any) -> Position:
    """Return the position in one partition, which ``_is_offset`` has checked."""
    return Position(given["next"], given["incarnation"]) if isinstance(given, dict) else Position(given)


def _is_offset(number: str, offset: object) -> bool:
    if isinstance(offset, dict):
        if offset.keys() != {"next", "incarnation"} or not _is_incarnation(offset["incarnation"]):
            return False
        offset = offset["next"]
    return is_number(number) and isinstance(offset, int) and not isinstance(offset, bool) and abs(offset) <= MAX_INT64


def _is_incarnation(given: object) -> bool:
    return isinstance(given, str) and len(given) <= MAX_INCARNATION
