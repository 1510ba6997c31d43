"""/maintenance and /recording: states of the node that PUT turns on and DELETE turns off."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request
from gateway.management.http.routes import Fields, Routes
from gateway.management.node_control import NodeControl

routes = Routes()


@dataclass(frozen=True, slots=True)
class Switch:
    """A state of the node: the methods that show it, turn it on and turn it off, and their summaries.

    ``show_level`` is the access level of GET; ``None`` if the path has no GET. ``turn_on`` and ``turn_off`` get the
    name of the user. With ``is_for_one_node`` it is refused in a cluster.
    """

    path: str
    show_level: AccessLevel | None
    show: Callable[[NodeControl], Mapping[str, Any]]
    turn_on: Callable[[NodeControl, str], None]
    turn_off: Callable[[NodeControl, str], None]
    show_summary: str
    on_summary: str
    off_summary: str
    is_for_one_node: bool = False

    def declare(self, routes: Routes) -> None:
        """Add the routes of the switch."""

        def show(call: Call) -> Fields:
            return dict(self.show(call.control))

        def turn_on(call: Call) -> Fields:
            self._require_one_node(call)
            self.turn_on(call.control, call.principal.name)
            return dict(self.show(call.control))

        def turn_off(call: Call) -> None:
            self._require_one_node(call)
            self.turn_off(call.control, call.principal.name)

        show.__doc__, turn_on.__doc__, turn_off.__doc__ = self.show_summary, self.on_summary, self.off_summary
        if self.show_level is not None:
            routes.get(self.path, level=self.show_level)(show)
        routes.put(self.path, level=AccessLevel.ADMINISTRATOR)(turn_on)
        routes.delete(self.path, level=AccessLevel.ADMINISTRATOR)(turn_off)

    def _require_one_node(self, call: Call) -> None:
        """Require a node that runs alone: in a cluster the leader answers, whichever node was meant."""
        if self.is_for_one_node and call.context.cluster_control is not None:
            raise bad_request(
                "a node of a cluster is drained and revived by its name: gatewayctl drain NODE, gatewayctl revive NODE "
                "or /api/cluster/nodes/NODE/maintenance"
            )


SWITCHES: Final = (
    Switch(
        "/maintenance",
        AccessLevel.MONITORING,
        lambda node: node.maintenance(),
        lambda node, user: node.drain(user),
        lambda node, user: node.revive(user),
        "Return whether the node is under maintenance, its suspended listeners, and the number of connections left.",
        "Close the listeners of clients, and their connections in slices; ``GET /maintenance`` shows the progress.",
        "Serve clients again.",
        is_for_one_node=True,
    ),
    Switch(
        "/maintenance/listeners",
        None,
        lambda node: node.maintenance(),
        lambda node, user: node.suspend_listeners(user),
        lambda node, user: node.resume_listeners(user),
        "",
        "Close the listeners of clients; their connections stay.",
        "Open the suspended listeners at the same ports.",
        is_for_one_node=True,
    ),
    Switch(
        "/recording",
        AccessLevel.ADMINISTRATOR,
        lambda node: node.recording(),
        lambda node, user: node.start_recording(user),
        lambda node, user: node.stop_recording(user),
        "Return whether connections are recorded, the file, its size, and the numbers of connections.",
        "Record the connections that are opened from now on, until the node stops; a running recording goes on.",
        "End the recording; its file stays.",
    ),
)

for switch in SWITCHES:
    switch.declare(routes)
