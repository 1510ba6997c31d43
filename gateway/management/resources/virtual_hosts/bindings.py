"""/bindings: the bindings."""

from collections.abc import Mapping
from urllib.parse import quote, unquote_plus

from gateway.access.indirect_publishing import require_unrestricted_topics
from gateway.kernel.names import require_not_default
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.binding import Binding, Destination
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.bodies import arguments, text
from gateway.management.http.call import Call
from gateway.management.http.errors import missing
from gateway.management.http.listing import Listing, stream_list
from gateway.management.http.routes import Fields, Reply, Routes
from gateway.management.permission_checks import require_bindable
from gateway.management.resources.virtual_hosts.exchanges import real_name
from gateway.management.views.topology import binding_view, default_binding_view, properties_key

routes = Routes()

_PAIR = "/bindings/<vhost>/e/<source>/<kind>/<destination>"


@routes.get("/bindings")
def bindings(call: Call) -> Listing[Binding | QueueLike]:
    """List the bindings of all virtual hosts that the user may see."""
    return _listing(call.visible_vhosts())


@routes.get("/bindings/<vhost>")
def in_vhost(call: Call, vhost: str) -> Listing[Binding | QueueLike]:
    """List the bindings of a virtual host."""
    return _listing([call.vhost(vhost)])


@routes.get(_PAIR)
def between(call: Call, vhost: str, source: str, kind: str, destination: str) -> object:
    """List the bindings between two ends."""
    virtual_host = call.vhost(vhost)
    if not real_name(source) and kind == "q":
        queue = virtual_host.queue_by_name.get(destination)
        return [default_binding_view(queue)] if queue is not None else []
    return stream_list(_between(virtual_host, source, kind, destination), binding_view)


@routes.post(_PAIR)
def bind(call: Call, vhost: str, source: str, kind: str, destination: str) -> Reply:
    """Create a binding; the response contains its path."""
    virtual_host, fields = call.writable_vhost(vhost), call.fields
    exchange = virtual_host.exchange(real_name(source))
    end = _end(virtual_host, kind, destination)
    routing_key = text(fields, "routing_key")
    require_bindable(call.permissions(virtual_host), _KINDS[kind], end.name, exchange, routing_key)
    if isinstance(end, QueueLike):
        end.require_owner(call)
    else:
        require_unrestricted_topics(call.permissions(virtual_host), end.name, end)
    require_not_default(end.name)
    binding = virtual_host.bind(exchange, end, routing_key, arguments(fields), call.principal.name)
    key = properties_key(binding.routing_key, binding.arguments)
    return Reply(201, headers={"Location": f"{quote(destination, safe='')}/{quote(key, safe='~')}"})


@routes.get(f"{_PAIR}/<key>")
def binding(call: Call, vhost: str, source: str, kind: str, destination: str, key: str) -> Fields:
    """Return one binding."""
    virtual_host = call.vhost(vhost)
    if (
        not real_name(source)
        and kind == "q"
        and destination in virtual_host.queue_by_name
        and _is_key(key, destination)
    ):
        return default_binding_view(virtual_host.queue_by_name[destination])
    return binding_view(_existing(virtual_host, source, kind, destination, key))


@routes.delete(f"{_PAIR}/<key>")
def unbind(call: Call, vhost: str, source: str, kind: str, destination: str, key: str) -> None:
    """Remove one binding."""
    virtual_host = call.writable_vhost(vhost)
    binding = _existing(virtual_host, source, kind, destination, key)
    permissions = call.permissions(virtual_host)
    require_bindable(permissions, _KINDS[kind], binding.destination.name, binding.source, binding.routing_key)
    if isinstance(binding.destination, QueueLike):
        binding.destination.require_owner(call)
    virtual_host.unbind(binding.source, binding.destination, binding.routing_key, binding.arguments)


_KINDS = {"q": "queue", "e": "exchange"}
"""Kinds of destinations by their abbreviation in paths."""


def _listing(vhosts: list[VirtualHost]) -> Listing[Binding | QueueLike]:
    """Return a listing of bindings; a queue represents its binding to the default exchange."""
    queues: list[Binding | QueueLike] = [queue for vhost in vhosts for queue in vhost.queue_by_name.values()]
    return Listing([*queues, *(binding for vhost in vhosts for binding in vhost.bindings)], _view, _key)


def _view(entry: Binding | QueueLike) -> Fields:
    return default_binding_view(entry) if isinstance(entry, QueueLike) else binding_view(entry)


def _key(entry: Binding | QueueLike) -> tuple[str, str]:
    if isinstance(entry, QueueLike):
        return entry.vhost_name, f"\0{entry.name}"
    return entry.source.vhost_name, f"{entry.source.name}\0{entry.destination.name}\0{entry.routing_key}"


def _between(vhost: VirtualHost, source: str, kind: str, destination: str) -> list[Binding]:
    if kind not in _KINDS:
        return []
    exchange = vhost.exchange_by_name.get(real_name(source))
    ends: Mapping[str, Destination] = vhost.exchange_by_name if kind == "e" else vhost.queue_by_name
    end = ends.get(destination)
    return vhost.bindings.between(exchange, end) if exchange is not None and end is not None else []


def _existing(vhost: VirtualHost, source: str, kind: str, destination: str, key: str) -> Binding:
    for binding in _between(vhost, source, kind, destination):
        if key in _spellings(properties_key(binding.routing_key, binding.arguments)):
            return binding
    raise missing()


def _is_key(key: str, routing_key: str) -> bool:
    return key in _spellings(properties_key(routing_key, {}))


def _spellings(key: str) -> tuple[str, str]:
    """Return a properties key unchanged, and as sent by tools that encode it once instead of twice."""
    return key, unquote_plus(key)


def _end(vhost: VirtualHost, kind: str, name: str) -> Destination:
    if kind == "q":
        return vhost.queue(name)
    if kind == "e":
        return vhost.exchange(real_name(name))
    raise missing()
