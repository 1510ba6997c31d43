"""A bus between nodes on core NATS: a subject for each node."""

from typing import Any, Final

from twisted.logger import Logger
from twisted.python.failure import Failure

from gateway.cluster.bus import Answered, BusListener
from gateway.cluster.errors import ClusterError, NodeUnreachable, TooLarge, Unanswered
from gateway_jetstream.client.client import NatsClient
from gateway_jetstream.client.subscriptions import NatsSubscription
from gateway_jetstream.codec.frames import Delivered
from gateway_jetstream.errors import Disconnected, NatsError, NoResponders, TooMuch
from gateway_jetstream.ports.layout import Layout

_log: Final = Logger()

#: The size of the largest frame: what servers take by default.
_MOST_BYTES: Final = 1024 * 1024


class JetStreamBus:
    """Sends over a client, at most once. Requests and frames for a node have one order."""

    def __init__(self, client: NatsClient, reactor: Any, layout: Layout) -> None:  # Any: as elsewhere
        self.most_bytes = _MOST_BYTES
        self._client = client
        self._reactor = reactor
        self._layout = layout

    def join(self, node: str, listener: BusListener) -> "JetStreamSeat":
        """Take a node's place."""
        return JetStreamSeat(self._client, self._layout.node_subject(node), listener)

    def send(self, node: str, frame: bytes) -> None:
        """Send a one-way frame. :raises TooLarge:"""
        self._require_small(frame)
        try:
            self._client.publish(self._layout.node_subject(node) + _FRAME, frame)
        except NatsError as error:
            _log.debug("a frame for node {node} is lost: {reason}", node=node, reason=str(error))

    def request(self, node: str, body: bytes, answered: Answered, timeout_s: float) -> None:
        """Send a request. :raises TooLarge:"""
        self._require_small(body)
        subject = self._layout.node_subject(node) + _REQUEST
        try:
            answer = self._client.request(subject, body, timeout_s=timeout_s)
        except NatsError as error:  # nothing was sent
            self._reactor.callLater(0, answered, NodeUnreachable(f"node {node}: {error}"))
            return
        answer.addCallbacks(lambda message: answered(message.payload), lambda failure: answered(_error(node, failure)))

    def _require_small(self, data: bytes) -> None:
        if len(data) > self.most_bytes:
            raise TooLarge(f"a frame of {len(data)} bytes; the bus takes {self.most_bytes}")


#: The last tokens of the subjects of a node.
_REQUEST: Final = ".r"
_FRAME: Final = ".f"


class JetStreamSeat:
    """The place of a node: one subscription, so that requests and frames keep their order."""

    def __init__(self, client: NatsClient, subject: str, listener: BusListener) -> None:
        self._client = client
        self._listener = listener
        self._subscription: NatsSubscription | None = client.subscribe(f"{subject}.*", self._take)

    def leave(self) -> None:
        """Get nothing any more."""
        if self._subscription is not None:
            self._subscription.stop()
            self._subscription = None

    def _take(self, message: Delivered) -> None:
        if message.subject.endswith(_FRAME):
            self._listener.on_frame(message.payload)
        elif message.reply:
            self._listener.on_request(message.payload, Answer(self._client, message.reply))


class Answer:
    """Answers a request, once."""

    __slots__ = ("_client", "_reply")

    def __init__(self, client: NatsClient, reply: str) -> None:
        self._client = client
        self._reply = reply

    def __call__(self, body: bytes) -> None:
        """Send the answer. :raises TooLarge: if it is."""
        if len(body) > _MOST_BYTES:
            raise TooLarge(f"an answer of {len(body)} bytes; the bus takes {_MOST_BYTES}")
        reply, self._reply = self._reply, ""
        if not reply:
            return
        try:
            self._client.publish(reply, body)
        except (Disconnected, TooMuch) as error:
            _log.debug("an answer is lost: {reason}", reason=str(error))


def _error(node: str, failure: Failure) -> ClusterError:
    error = failure.value
    if isinstance(error, NoResponders):
        return NodeUnreachable(f"node {node}: {error}")
    if not isinstance(error, NatsError):
        failure.raiseException()
    return Unanswered(f"node {node}: {error}")
