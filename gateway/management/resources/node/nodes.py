"""/nodes: this node, and the other members of its cluster."""

from typing import Final

from gateway.management.cluster_state import MemberState
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import missing
from gateway.management.http.listing import with_columns
from gateway.management.http.routes import Fields, Routes
from gateway.management.views.members import other_node_view
from gateway.management.views.nodes import memory_view, node_view, relative_memory_view

routes = Routes()

#: As RabbitMQ answers for a node that it cannot ask.
_UNKNOWN_MEMORY: Final[Fields] = {"memory": "not_available"}


@routes.get("/nodes", level=AccessLevel.MONITORING)
def nodes(call: Call) -> list[Fields]:
    """List the nodes."""
    names = [call.broker.node] if call.cluster is None else [member.name for member in call.cluster.members]
    return [_view(call, name) for name in names]


@routes.get("/nodes/<name>", level=AccessLevel.MONITORING)
def node(call: Call, name: str) -> Fields:
    """Return a node."""
    return _view(call, name)


@routes.get("/nodes/<name>/memory", level=AccessLevel.MONITORING)
def memory(call: Call, name: str) -> Fields:
    """Return the memory use of a node; only its own is known."""
    return memory_view() if _is_this_node(call, name) else dict(_UNKNOWN_MEMORY)


@routes.get("/nodes/<name>/memory/relative", level=AccessLevel.MONITORING)
def relative_memory(call: Call, name: str) -> Fields:
    """Return the memory use of a node in percent."""
    return relative_memory_view() if _is_this_node(call, name) else dict(_UNKNOWN_MEMORY)


def _view(call: Call, name: str) -> Fields:
    """Return the view of a node. :raises HttpError: if there is none with this name."""
    view = node_view(call) if name == call.broker.node else other_node_view(_other_member(call, name))
    return with_columns(view, call.query)


def _is_this_node(call: Call, name: str) -> bool:
    """Return whether the node is this one. :raises HttpError: if there is none with this name."""
    return name == call.broker.node or _other_member(call, name).is_this_node


def _other_member(call: Call, name: str) -> MemberState:
    """Return a member of the cluster. :raises HttpError: if there is none with this name."""
    members = () if call.cluster is None else call.cluster.members
    for member in members:
        if member.name == name:
            return member
    raise missing()
