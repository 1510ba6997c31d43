"""JSON view of a trace: where the message is, and its events in order."""

from gateway.kernel.archives.message_trace import MessageTrace, TraceEvent
from gateway.kernel.archives.whereabouts import Whereabouts, whereabouts
from gateway.kernel.broker.broker import Broker
from gateway.kernel.features.interceptors import routing_type
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.routes import Fields
from gateway.management.views.times import timestamp


def trace_view(broker: Broker, vhost: VirtualHost, trace: MessageTrace) -> Fields:
    """Return the view of a trace; ``plugin`` supplies the type of its exchange now."""
    exchange = vhost.exchange_by_name.get(trace.exchange)
    plugin = ""
    if exchange is not None and exchange.name and not exchange.inert_reason:
        plugin = broker.plugins_in_use.plugin_of(vhost.name, routing_type(exchange.type_name, exchange.arguments))
    where = whereabouts(trace, vhost.message_traces.departures, vhost.queue_by_name.__contains__)
    return {
        "id": trace.id,
        "vhost": vhost.name,
        "exchange": trace.exchange,
        "exchange_type": None if exchange is None else exchange.type_name,
        "plugin": plugin or None,
        "routing_key": trace.routing_key,
        "message_id": trace.header.properties.message_id,
        "body_size": trace.body_size,
        "where": [_place_view(each) for each in where],
        "events": [_event_view(event) for event in trace.events],
    }


def _place_view(where: Whereabouts) -> Fields:
    place = {"exchange": where.exchange} if where.exchange else {"queue": where.queue}
    return {**place, "state": where.state}


def _event_view(event: TraceEvent) -> Fields:
    """Return the view of an event, without the fields that do not apply."""
    fields: Fields = {"event": event.kind, "at": timestamp(event.at_ms), "at_ms": event.at_ms}
    if event.kind in ("publish", "dead-letter"):
        fields |= {"exchange": event.exchange, "routing_key": event.routing_key}
    elif event.exchange:
        fields["exchange"] = event.exchange
    if event.queue:
        fields["queue"] = event.queue
    if event.position is not None:
        fields["position"] = event.position
    if event.kind == "delay":
        fields["due_at"] = timestamp(int(event.detail))
    elif event.detail:
        fields[_DETAILS.get(event.kind, "reason")] = event.detail
    if event.kind == "deliver":
        fields["redelivered"] = event.redelivered
    if event.origin is not None:
        origin = event.origin
        fields |= {"protocol": origin.protocol_in_traces, "connection": origin.connection, "user": origin.user}
    return fields


_DETAILS = {"enqueue": "applied", "settle": "outcome", "requeue": "outcome", "left-out": "count"}
