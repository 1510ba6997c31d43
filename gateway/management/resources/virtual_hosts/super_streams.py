"""/stream/super-streams: the super streams."""

from typing import Final

from gateway.access import Operation
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management import super_streams
from gateway.management.http.bodies import arguments, integer, text
from gateway.management.http.call import Call
from gateway.management.http.errors import missing
from gateway.management.http.listing import Listing
from gateway.management.http.routes import Fields, Reply, Routes
from gateway.management.super_streams import SuperStreamPlan

routes = Routes()

_ONE: Final = "/stream/super-streams/<vhost>/<name>"

#: Default exchange types: for numbered partitions and for binding keys.
_BY_NUMBER: Final = "x-super-stream"
_BY_KEY: Final = "direct"

_PARTITIONS: Final = 3
"""Default number of partitions, as in RabbitMQ."""


@routes.get("/stream/super-streams")
def everywhere(call: Call) -> Listing[Exchange]:
    """List the super streams of all virtual hosts that the user may see."""
    return _listing(call.visible_vhosts())


@routes.get("/stream/super-streams/<vhost>")
def in_vhost(call: Call, vhost: str) -> Listing[Exchange]:
    """List the super streams of a virtual host."""
    return _listing([call.vhost(vhost)])


@routes.get(_ONE)
def super_stream(call: Call, vhost: str, name: str) -> Fields:
    """Return a super stream."""
    virtual_host = call.vhost(vhost)
    return _view(virtual_host, _existing(virtual_host, name))


@routes.put(_ONE)
def create(call: Call, vhost: str, name: str) -> Reply:
    """Create a super stream: ``partitions`` or ``binding-keys``, and ``arguments`` for the streams."""
    virtual_host = call.writable_vhost(vhost)
    plan = _plan_of(name, call.fields)
    permissions = call.permissions(virtual_host)
    permissions.require(Operation.CONFIGURE, "exchange", name)
    permissions.require(Operation.READ, "exchange", name)
    for partition in plan.partitions:
        permissions.require(Operation.CONFIGURE, "queue", partition.name)
        permissions.require(Operation.WRITE, "queue", partition.name)
    super_streams.create_super_stream(virtual_host, plan, call.principal.name)
    return Reply(201)


@routes.delete(_ONE)
def remove(call: Call, vhost: str, name: str) -> None:
    """Delete a super stream with its partitions and all messages."""
    virtual_host = call.vhost(vhost)
    exchange = _existing(virtual_host, name)
    permissions = call.permissions(virtual_host)
    permissions.require(Operation.CONFIGURE, "exchange", name)
    for stream in super_streams.partitions_of(virtual_host, exchange):
        permissions.require(Operation.CONFIGURE, "queue", stream.name)
    super_streams.delete_super_stream(virtual_host, exchange)


def _plan_of(name: str, fields: Fields) -> SuperStreamPlan:
    table = arguments(fields)
    if "binding-keys" not in fields:
        partitions = integer(fields.get("partitions", _PARTITIONS), "partitions")
        return super_streams.numbered_plan(name, partitions, text(fields, "exchange-type", _BY_NUMBER), table)
    if "partitions" in fields:
        raise PreconditionFailed("Specify partitions or binding-keys, not both")
    keys = [key.strip() for key in text(fields, "binding-keys").split(",") if key.strip()]
    return super_streams.keyed_plan(name, keys, text(fields, "exchange-type", _BY_KEY), table)


def _existing(vhost: VirtualHost, name: str) -> Exchange:
    exchange = vhost.exchange_by_name.get(name)
    if exchange is None or not super_streams.is_super_stream(exchange):
        raise missing()
    return exchange


def _listing(vhosts: list[VirtualHost]) -> Listing[Exchange]:
    vhost_by_exchange = {exchange: vhost for vhost in vhosts for exchange in super_streams.super_streams(vhost)}
    return Listing(
        list(vhost_by_exchange),
        lambda exchange: _view(vhost_by_exchange[exchange], exchange),
        lambda exchange: (exchange.vhost_name, exchange.name),
    )


def _view(vhost: VirtualHost, exchange: Exchange) -> Fields:
    streams = super_streams.partitions_of(vhost, exchange)
    return {
        "exchange_type": exchange.type_name,
        "messages": sum(map(len, streams)),
        "name": exchange.name,
        "partitions": [stream.name for stream in streams],
        "vhost": exchange.vhost_name,
    }
