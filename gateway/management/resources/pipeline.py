"""/pipeline: streams for Spark to plan with and read, and how far its queries are."""

from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred

from gateway.access import Operation
from gateway.kernel.vhost import VirtualHost
from gateway.management.authority import Level
from gateway.management.call import Call
from gateway.management.downloads import Download
from gateway.management.errors import bad_request
from gateway.management.pipeline.progress import Report, lag_view
from gateway.management.pipeline.reading import Wanted
from gateway.management.pipeline.refusals import not_found
from gateway.management.pipeline.streams import (
    LARGEST,
    is_number,
    named,
    offset_after,
    readable,
    readable_stream,
    whole_number,
)
from gateway.management.routes import Fields, Routes
from gateway.management.super_streams import partitions_of
from gateway.management.views.times import stamp

routes = Routes()


@routes.get("/pipeline/<vhost>/streams", level=Level.USER)
def streams(call: Call, vhost: str) -> Fields:
    """Tell where streams begin and end: those of some names, or all that the user may read."""
    place = call.entered_vhost(vhost)
    if "names" in call.query:
        return {"queues": named(call, place, call.query["names"])}
    if "pattern" in call.query:
        raise bad_request("a pattern is for who asks to match: without 'names' all streams are listed")
    return {"queues": readable(call, place)}


@routes.get("/pipeline/<vhost>/offset", level=Level.USER)
def offset(call: Call, vhost: str) -> Fields:
    """Tell the offset of the first message at or after a time (ms), or that some bytes behind another."""
    stream = readable_stream(call, call.entered_vhost(vhost), call.query.get("queue", ""))
    if "timestamp" in call.query:
        return {"offset": stream.offset_at(whole_number(call, "timestamp"))}
    return {"offset": offset_after(stream, whole_number(call, "offset"), whole_number(call, "bytes"))}


@routes.get("/pipeline/<vhost>/read", level=Level.USER)
def read(call: Call, vhost: str) -> "Deferred[Download]":
    """Send messages in Arrow's stream format."""
    stream = readable_stream(call, call.entered_vhost(vhost), call.query.get("queue", ""))
    wanted = Wanted(stream, whole_number(call, "from"), whole_number(call, "to"))
    return call.surroundings.pipeline.reading.read(wanted)


# How far consumers are


@routes.put("/pipeline/<vhost>/progress/<consumer>", level=Level.USER)
def report(call: Call, vhost: str, consumer: str) -> None:
    """Take down how far a consumer is: ``{"offsets": {"orders": {"0": 500}}}``."""
    place = call.entered_vhost(vhost)
    offsets = _offsets(call.fields.get("offsets"))
    now_ms = call.broker.clock.wall_ms()
    call.surroundings.pipeline.progress.report(place.name, consumer, Report(offsets, now_ms, call.principal.name))


@routes.get("/pipeline/<vhost>/progress", level=Level.USER)
def progress(call: Call, vhost: str) -> list[Fields]:
    """List the consumers and how far behind the end they are, as far as the user may read the streams."""
    place = call.entered_vhost(vhost)
    return [
        {
            "consumer": name,
            "vhost": place.name,
            "user": each.user,
            "reported_at": stamp(each.reported_at_ms),
            "partitions": _partitions(call, place, each),
        }
        for name, each in call.surroundings.pipeline.progress.of(place.name)
    ]


@routes.delete("/pipeline/<vhost>/progress/<consumer>", level=Level.USER)
def forget(call: Call, vhost: str, consumer: str) -> None:
    """Forget a consumer; it is there again once it reports."""
    place = call.entered_vhost(vhost)
    if not call.surroundings.pipeline.progress.forget(place.name, consumer):
        raise not_found(f"no consumer '{consumer}' in vhost '{vhost}'")


def _partitions(call: Call, vhost: VirtualHost, report: Report) -> list[Fields]:
    may_read = call.permissions(vhost).may
    views = []
    for queue, partitions in report.offsets.items():
        exchange = vhost.exchange_by_name.get(queue)
        parts = [] if exchange is None or queue in vhost.queue_by_name else partitions_of(vhost, exchange)
        for number, reached in partitions.items():
            name = parts[int(number)].name if int(number) < len(parts) else queue
            if may_read(Operation.READ, name):
                views.append(lag_view(vhost, queue, number, name, reached))
    return views


def _offsets(given: Any) -> Mapping[str, Mapping[str, int]]:
    """Read offsets by partition by queue. :raises HttpError: when they are none."""
    try:
        if all(_is_place(number, reached) for partitions in given.values() for number, reached in partitions.items()):
            return given  # type: ignore[no-any-return]  # JSON, looked at just now
    except AttributeError:
        pass
    raise bad_request("'offsets' must be offsets by partition by queue")


def _is_place(number: str, reached: object) -> bool:
    return is_number(number) and isinstance(reached, int) and not isinstance(reached, bool) and abs(reached) <= LARGEST
