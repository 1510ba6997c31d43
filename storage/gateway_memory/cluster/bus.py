"""A bus in memory."""

from typing import Final

from gateway.cluster.bus import Answered, BusListener
from gateway.cluster.errors import ClusterError, NodeUnreachable, TooLarge, Unanswered
from gateway.kernel.clock import Clock, Timer

#: The size of the largest frame, as with JetStream.
_MOST_BYTES: Final = 1024 * 1024


class MemoryBus:
    """Connects the nodes of one process. Everything arrives in a later turn of the clock."""

    def __init__(self, clock: Clock, most_bytes: int = _MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._clock = clock
        self._seats: dict[str, MemorySeat] = {}

    def join(self, node: str, listener: BusListener) -> "MemorySeat":
        """Take a node's place."""
        seat = self._seats[node] = MemorySeat(self._seats, node, listener)
        return seat

    def send(self, node: str, frame: bytes) -> None:
        """Send a one-way frame. :raises TooLarge:"""
        self._require_small(frame)
        self._clock.call_later(0, lambda: self._deliver(node, frame))

    def request(self, node: str, body: bytes, answered: Answered, timeout_s: float) -> None:
        """Send a request. :raises TooLarge:"""
        self._require_small(body)
        request = MemoryRequest(answered)
        text = f"node {node} did not answer within {timeout_s:g} s"
        request.timer = self._clock.call_later(timeout_s, lambda: request.end(Unanswered(text)))
        self._clock.call_later(0, lambda: self._ask(node, body, request))

    def _deliver(self, node: str, frame: bytes) -> None:
        seat = self._seats.get(node)
        if seat is not None:
            seat.listener.on_frame(frame)

    def _ask(self, node: str, body: bytes, request: "MemoryRequest") -> None:
        seat = self._seats.get(node)
        if seat is None:
            request.end(NodeUnreachable(f"node {node} is not on the bus"))
            return
        seat.listener.on_request(body, lambda answer: self._reply(request, answer))

    def _reply(self, request: "MemoryRequest", answer: bytes) -> None:
        self._require_small(answer)
        self._clock.call_later(0, lambda: request.end(answer))

    def _require_small(self, data: bytes) -> None:
        if len(data) > self.most_bytes:
            raise TooLarge(f"a frame of {len(data)} bytes; the bus takes {self.most_bytes}")


class MemorySeat:
    """The place of a node."""

    def __init__(self, seats: "dict[str, MemorySeat]", node: str, listener: BusListener) -> None:
        self._seats = seats
        self._node = node
        self.listener = listener

    def leave(self) -> None:
        """Get nothing any more."""
        if self._seats.get(self._node) is self:
            del self._seats[self._node]


class MemoryRequest:
    """A request that waits for its answer."""

    def __init__(self, answered: Answered) -> None:
        self._answered: Answered | None = answered
        self.timer: Timer | None = None

    def end(self, answer: bytes | ClusterError) -> None:
        """Answer the request, once."""
        answered, self._answered = self._answered, None
        if answered is not None:
            if self.timer is not None:
                self.timer.cancel()
            answered(answer)
