"""Updates of the flow control of all connections: an alarm concerns every publisher."""

from collections import deque
from collections.abc import Callable
from typing import Final

from gateway.kernel.broker.connections import Connections, Peer

#: Connections that are updated in one turn: one takes a microsecond, five if it is blocked, and then a write.
MOST_UPDATED: Final = 256


class FlowUpdates:
    """Lets all connections check again whether their publishes are blocked, the rest of many in later turns.

    ``call_soon`` calls in a later turn. These are no background jobs, because those pause while the disk is behind,
    which is one of the reasons to block publishers.
    """

    def __init__(self, connections: Connections, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._connections = connections
        self._call_soon = call_soon
        self._waiting: deque[Peer] = deque()
        self._is_waiting: set[Peer] = set()
        self._is_scheduled = False

    def update_all(self) -> None:
        """Update all connections. Those that wait for an earlier update keep their places."""
        for peer in self._connections:
            if peer not in self._is_waiting:
                self._is_waiting.add(peer)
                self._waiting.append(peer)
        if not self._is_scheduled:
            self._update_some()

    def _go_on(self) -> None:
        self._is_scheduled = False
        self._update_some()

    def _update_some(self) -> None:
        waiting = self._waiting
        for _ in range(MOST_UPDATED):
            if not waiting:
                return
            peer = waiting.popleft()
            self._is_waiting.remove(peer)
            if peer in self._connections:
                peer.update_flow_control()
        self._is_scheduled = True
        self._call_soon(self._go_on)
