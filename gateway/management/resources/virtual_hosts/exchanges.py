"""/exchanges: the exchanges, their bindings, and publishing."""

from collections.abc import Generator

from twisted.internet.defer import Deferred

from gateway.access import Operation
from gateway.kernel.budget import PendingWork
from gateway.kernel.errors import Refused
from gateway.kernel.names import require_not_default
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.verdict import Verdict
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.bodies import arguments, boolean, require, text
from gateway.management.http.call import Call
from gateway.management.http.errors import as_channel_error, missing
from gateway.management.http.listing import Listing, stream_list, with_columns_in_steps
from gateway.management.http.routes import ANY_BODY, Fields, LongTask, Reply, Routes, put_reply
from gateway.management.messages import message_of
from gateway.management.permission_checks import require_declarable_exchange, require_no_alarm, require_publishable
from gateway.management.views.topology import (
    DEFAULT_EXCHANGE,
    binding_view,
    default_binding_view,
    detailed_exchange_view,
    exchange_view,
)

routes = Routes()


@routes.get("/exchanges")
def exchanges(call: Call) -> Listing[Exchange]:
    """List the exchanges of all virtual hosts that the user may see."""
    return _listing(call, call.visible_vhosts())


@routes.get("/exchanges/<vhost>")
def in_vhost(call: Call, vhost: str) -> Listing[Exchange]:
    """List the exchanges of a virtual host."""
    return _listing(call, [call.vhost(vhost)])


@routes.get("/exchanges/<vhost>/<name>")
def exchange(call: Call, vhost: str, name: str) -> LongTask:
    """Return an exchange with its traffic by channel and queue."""
    return LongTask(
        with_columns_in_steps(detailed_exchange_view(call, existing_exchange(call.vhost(vhost), name)), call.query)
    )


@routes.put("/exchanges/<vhost>/<name>")
def put_exchange(call: Call, vhost: str, name: str) -> Reply:
    """Declare an exchange."""
    virtual_host, fields, name = call.writable_vhost(vhost), call.fields, real_name(name)
    existed = name in virtual_host.exchange_by_name
    table = arguments(fields)
    require_not_default(name)
    require_declarable_exchange(call, virtual_host, name, table)
    virtual_host.declare_exchange(
        name,
        text(fields, "type", "direct"),
        is_durable=boolean(fields, "durable"),
        is_auto_delete=boolean(fields, "auto_delete"),
        is_internal=boolean(fields, "internal"),
        arguments=table,
    )
    return put_reply(existed)


@routes.delete("/exchanges/<vhost>/<name>")
def delete_exchange(call: Call, vhost: str, name: str) -> None:
    """Delete an exchange."""
    virtual_host = call.vhost(vhost)
    exchange = existing_exchange(virtual_host, name)
    call.permissions(virtual_host).require(Operation.CONFIGURE, "exchange", exchange.name)
    virtual_host.delete_exchange(exchange.name, if_unused=call.is_set("if-unused"))


@routes.post("/exchanges/<vhost>/<name>/publish", largest_body=ANY_BODY)
def publish(call: Call, vhost: str, name: str) -> "Fields | LongTask":
    """Publish a message; return whether it was routed to a queue."""
    fields = call.fields
    properties, routing_key, payload, encoding = require(
        fields, "properties", "routing_key", "payload", "payload_encoding"
    )
    virtual_host, name = call.writable_vhost(vhost), real_name(name)
    require_no_alarm(call)
    message = message_of(name, routing_key, properties, payload, encoding)
    try:
        exchange = virtual_host.exchange(name)
        require_publishable(call, virtual_host, exchange, message)
        message = virtual_host.interception.published(message, call.origin)
        verdict = virtual_host.publish(virtual_host.exchange(message.exchange), message, call.origin)
        work = call.broker.journal.budget.take_pending()
    except Refused as refusal:
        raise as_channel_error(refusal) from None
    if work is not None and verdict is Verdict.UNDECIDED:
        return LongTask(_when_routed(work))
    return {"routed": verdict is not Verdict.UNROUTED}  # this does not wait for a publish that goes on in slices


def _when_routed(work: PendingWork) -> Generator[Deferred[None], None, Fields]:
    """Return the steps that wait for the route of a message, and return whether it has one."""
    done: Deferred[None] = Deferred()
    work.when_done(lambda _: done.callback(None))
    yield done
    return {"routed": not work.is_unrouted}


@routes.get("/exchanges/<vhost>/<name>/bindings/source")
def bindings_from(call: Call, vhost: str, name: str) -> object:
    """List the bindings with an exchange as source."""
    virtual_host = call.vhost(vhost)
    exchange = existing_exchange(virtual_host, name)
    if exchange is virtual_host.default_exchange:
        return stream_list(list(virtual_host.queue_by_name.values()), default_binding_view)
    return stream_list(list(virtual_host.bindings.of(exchange)), binding_view)


@routes.get("/exchanges/<vhost>/<name>/bindings/destination")
def bindings_to(call: Call, vhost: str, name: str) -> object:
    """List the bindings with an exchange as destination."""
    virtual_host = call.vhost(vhost)
    return stream_list(list(virtual_host.bindings.to(existing_exchange(virtual_host, name))), binding_view)


def real_name(name: str) -> str:
    """Return the name of an exchange from that in a path."""
    return "" if name == DEFAULT_EXCHANGE else name


def _listing(call: Call, vhosts: list[VirtualHost]) -> Listing[Exchange]:
    chosen = [exchange for vhost in vhosts for exchange in vhost.exchange_by_name.values()]
    return Listing(chosen, lambda each: exchange_view(call, each), lambda each: (each.vhost_name, each.name))


def existing_exchange(vhost: VirtualHost, name: str) -> Exchange:
    """Return the exchange with the name in a path. :raises HttpError: if it does not exist."""
    exchange = vhost.exchange_by_name.get(real_name(name))
    if exchange is None:
        raise missing()
    return exchange
