"""/nodes: the single node."""

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import missing
from gateway.management.http.listing import with_columns
from gateway.management.http.routes import Fields, Routes
from gateway.management.views.nodes import memory_view, node_view, relative_memory_view

routes = Routes()


@routes.get("/nodes", level=AccessLevel.MONITORING)
def nodes(call: Call) -> list[Fields]:
    """List the nodes."""
    return [with_columns(node_view(call), call.query)]


@routes.get("/nodes/<name>", level=AccessLevel.MONITORING)
def node(call: Call, name: str) -> Fields:
    """Return a node."""
    _require_node(call, name)
    return with_columns(node_view(call), call.query)


@routes.get("/nodes/<name>/memory", level=AccessLevel.MONITORING)
def memory(call: Call, name: str) -> Fields:
    """Return the memory use of a node."""
    _require_node(call, name)
    return memory_view()


@routes.get("/nodes/<name>/memory/relative", level=AccessLevel.MONITORING)
def relative_memory(call: Call, name: str) -> Fields:
    """Return the memory use of a node in percent."""
    _require_node(call, name)
    return relative_memory_view()


def _require_node(call: Call, name: str) -> None:
    if name != call.broker.node:
        raise missing()
