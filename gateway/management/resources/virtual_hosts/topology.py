"""/topology: exchanges and queues with the bindings between them and their rates, for a drawing.

A drawing has a limited size, so it begins at one object, or at the exchanges with most traffic, and follows bindings.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.routing.binding import Binding
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.bodies import digits
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, missing
from gateway.management.http.ordering import sort_in_steps
from gateway.management.http.routes import Fields, LongTask, Routes
from gateway.management.resources.virtual_hosts.exchanges import existing_exchange
from gateway.management.statistics.subjects import key_of, route_key
from gateway.management.views.flows import arrow_rates

routes = Routes()

_DEFAULT_LIMIT: Final = 60
_MOST: Final = 300

#: Bindings of one object that are examined; an object with more has ``is_partial``.
_MOST_BINDINGS: Final = 1000

Node: TypeAlias = Exchange | QueueLike


@routes.get("/topology/<vhost>")
def topology(call: Call, vhost: str) -> LongTask:
    """Return the objects around ``exchange`` or ``queue`` of the query, at most ``limit``, and the bindings between."""
    virtual_host = call.vhost(vhost)
    limit = digits(call.query.get("limit", str(_DEFAULT_LIMIT)))
    if limit is None or not 1 <= limit <= _MOST:
        raise bad_request(f"limit must be a number from 1 to {_MOST}, not '{call.query['limit']}'")
    return LongTask(_drawn(call, virtual_host, _selected(call, virtual_host), limit))


def _selected(call: Call, vhost: VirtualHost) -> Node | None:
    """Return the object that the query selects. :raises HttpError: if it does not exist."""
    if "exchange" in call.query:
        return existing_exchange(vhost, call.query["exchange"])
    if "queue" in call.query:
        queue = vhost.queue_by_name.get(call.query["queue"])
        if queue is None:
            raise missing()
        return queue
    return None


def _drawn(call: Call, vhost: VirtualHost, selected: Node | None, limit: int) -> Generator[None, None, Fields]:
    """Follow bindings in both directions, widest first; one object a step."""
    waiting: deque[Node] = deque([selected] if selected is not None else (yield from _busiest(call, vhost)))
    nodes: dict[Node, None] = {}
    bindings: dict[Binding, None] = {}
    is_partial = False
    while waiting and len(nodes) < limit:
        node = waiting.popleft()
        if node in nodes:
            continue
        nodes[node] = None
        found = [*(vhost.bindings.of(node) if isinstance(node, Exchange) else ()), *vhost.bindings.to(node)]
        is_partial |= len(found) > _MOST_BINDINGS
        for binding in found[:_MOST_BINDINGS]:
            bindings[binding] = None
            waiting.extend(_ends(binding))
        yield
    is_partial |= any(node not in nodes for node in waiting)
    edges = yield from _edges(call, nodes, bindings)
    return {"nodes": [_node_view(call, node) for node in nodes], "edges": edges, "is_partial": is_partial}


def _busiest(call: Call, vhost: VirtualHost) -> Generator[None, None, list[Exchange]]:
    """Return the exchanges with bindings, those with the highest rates first."""
    return (
        yield from sort_in_steps(
            list(vhost.exchange_by_name.values()),
            lambda each: (-call.trend(key_of(each)).rate("publish_in"), each.name),
            lambda each: bool(each.name) and vhost.bindings.has_any(each),
        )
    )


def _ends(binding: Binding) -> Iterator[Node]:
    for end in (binding.source, binding.destination):
        if isinstance(end, Exchange | QueueLike):
            yield end


def _edges(call: Call, nodes: dict[Node, None], bindings: dict[Binding, None]) -> Generator[None, None, list[Fields]]:
    """Return an edge for each two bound objects, with its routing keys and its rate."""
    edges: dict[tuple[Node, Node], Fields] = {}
    for number, binding in enumerate(bindings):
        source, destination = binding.source, binding.destination
        if source in nodes and destination in nodes:
            edge = edges.setdefault((source, destination), _edge_view(binding))
            edge["bindings"] += 1
            if len(edge["routing_keys"]) < 5:
                edge["routing_keys"].append(binding.routing_key)
        if number % 64 == 0:
            yield
    entries: dict[Node, float] = {
        node: call.trend(key_of(node)).rate("publish_in") for node in nodes if isinstance(node, Exchange)
    }
    flows = yield from _flows(call, entries, [node for node in nodes if isinstance(node, QueueLike)])
    rates = yield from arrow_rates(edges, entries, flows)
    return [edge | {"rate": rates[ends].exact, "at_most": rates[ends].at_most} for ends, edge in edges.items()]


def _flows(
    call: Call, exchanges: Iterable[Node], queues: Sequence[QueueLike]
) -> Generator[None, None, dict[tuple[Node, Node], float]]:
    """Return the rates by exchange and queue that are not zero."""
    flows: dict[tuple[Node, Node], float] = {}
    statistics = call.context.statistics
    for exchange in exchanges:
        assert isinstance(exchange, Exchange)
        for queue in queues:
            key = route_key(exchange, queue)
            if statistics.sampled(key) and (rate := call.trend(key).rate("publish")):
                flows[exchange, queue] = rate
        yield
    return flows


def _edge_view(binding: Binding) -> Fields:
    source, destination = binding.source, binding.destination
    return {
        "source": source.name,
        "destination": destination.name,
        "destination_type": "queue" if isinstance(destination, QueueLike) else "exchange",
        "bindings": 0,
        "routing_keys": [],
    }


def _node_view(call: Call, node: Node) -> Fields:
    trend = call.trend(key_of(node))
    if isinstance(node, Exchange):
        return {
            "kind": "exchange",
            "name": node.name,
            "type": node.type_name,
            "in": trend.rate("publish_in"),
            "out": trend.rate("publish_out"),
        }
    return {
        "kind": "queue",
        "name": node.name,
        "type": str(node.arguments.get("x-queue-type", "classic")),
        "messages": len(node),
        "consumers": len(node.consumers),
        "in": trend.rate("publish"),
        "out": trend.rate("deliver_get"),
    }
