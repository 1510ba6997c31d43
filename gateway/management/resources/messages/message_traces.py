"""/message-traces: the places of messages, and their events. RabbitMQ has no such resource."""

from collections.abc import Generator, Mapping
from typing import Final

from gateway.kernel.archives.message_trace import MessageTrace
from gateway.kernel.archives.message_traces import MessageTraces
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import digits, require
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, missing
from gateway.management.http.routes import Fields, LongTask, Routes
from gateway.management.views.message_traces import trace_view

routes = Routes()

_FILTERS: Final = ("message_id", "exchange", "routing_key", "queue", "user")
_MOST: Final = 1000
_DEFAULT_LIMIT: Final = 100

#: Traces examined between two readings of the clock: each may decode the properties of a message.
_STEP: Final = 16


@routes.get("/message-traces/<vhost>", level=AccessLevel.MONITORING)
def message_traces(call: Call, vhost: str) -> LongTask:
    """Return the latest traces that match the filters of the query."""
    virtual_host = call.vhost(vhost)
    if unknown := sorted(call.query.keys() - {*_FILTERS, "limit"}):
        raise bad_request(f"unknown filter '{unknown[0]}'; there are {', '.join(_FILTERS)} and limit")
    limit = digits(call.query.get("limit", str(_DEFAULT_LIMIT)))
    if limit is None or not 1 <= limit <= _MOST:
        raise bad_request(f"limit must be a number from 1 to {_MOST}, not '{call.query['limit']}'")
    wanted = {name: call.query[name] for name in _FILTERS if name in call.query}
    return LongTask(_found(call, virtual_host, wanted, limit))


@routes.get("/message-traces/<vhost>/<id>", level=AccessLevel.MONITORING)
def message_trace(call: Call, vhost: str, id: str) -> Fields:
    """Return one trace."""
    virtual_host, number = call.vhost(vhost), digits(id)
    trace = None if number is None else virtual_host.message_traces.get(number)
    if trace is None:
        raise missing()
    return trace_view(call.broker, virtual_host, trace)


@routes.put("/message-traces/<vhost>", level=AccessLevel.ADMINISTRATOR)
def put_sample(call: Call, vhost: str) -> None:
    """Trace a fraction of the messages from now on, until the node stops; 0 ends it and keeps the traces."""
    virtual_host, fields = call.vhost(vhost), call.fields
    [sample] = require(fields, "sample")
    if isinstance(sample, bool) or not isinstance(sample, int | float) or not 0 <= sample <= 1:
        raise bad_request(f"sample must be a number from 0 to 1, not {sample!r}")
    call.broker.trace_messages(virtual_host.name, float(sample))


@routes.delete("/message-traces/<vhost>", level=AccessLevel.ADMINISTRATOR)
def clear(call: Call, vhost: str) -> None:
    """Drop all traces."""
    call.vhost(vhost).message_traces.clear()


def _found(call: Call, vhost: VirtualHost, wanted: Mapping[str, str], limit: int) -> Generator[None, None, Fields]:
    traces, found = vhost.message_traces, []
    for number, trace in enumerate(traces):
        if _matches(trace, wanted):
            found.append(trace_view(call.broker, vhost, trace))
            if len(found) == limit:
                break
        if number % _STEP == 0:
            yield
    return _store_view(traces) | {"traces": found}


def _store_view(traces: MessageTraces) -> Fields:
    return {
        "sample": traces.sample,
        "messages": len(traces),
        "max_messages": traces.rules.most_messages,
        "bytes": traces.bytes,
        "max_bytes": traces.rules.most_bytes,
        "evicted": traces.evicted,
    }


def _matches(trace: MessageTrace, wanted: Mapping[str, str]) -> bool:
    """Return whether a trace has all wanted values; the message id comes last, because it has to be decoded."""
    for name, value in wanted.items():
        if name in ("exchange", "routing_key") and getattr(trace, name) != value:
            return False
        if name == "queue" and all(event.queue != value for event in trace.events):
            return False
        if name == "user" and all(event.origin is None or event.origin.user != value for event in trace.events):
            return False
    return "message_id" not in wanted or trace.header.properties.message_id == wanted["message_id"]
