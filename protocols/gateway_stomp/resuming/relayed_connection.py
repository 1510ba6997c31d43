"""One STOMP connection that a follower passes to the leader, and to the next leader when that one is lost.

Both directions are cut into frames. A connection that is not understood is passed on as it comes, and ends with the
leader.
"""

from collections.abc import Callable
from enum import Enum
from typing import Final

from gateway.net.forwarding.relayed_bytes import RelayedBytes
from gateway.net.forwarding.routing import ClientRoute
from gateway_stomp.errors import StompError
from gateway_stomp.frames import HEARTBEAT, encode
from gateway_stomp.resuming.frame_head import FrameHead, without_headers
from gateway_stomp.resuming.frame_stream import FrameStream
from gateway_stomp.resuming.subscriptions import OFFSET, RelayedSubscriptions
from gateway_stomp.resuming.unreceipted import UnreceiptedFrames
from gateway_stomp.versions import Version

#: So many bytes of frames without receipts and of open transactions are kept; then the client is not read until there
#: are fewer. A transaction of more ends the connection with the leader.
MOST_KEPT: Final = 4 * 2**20

#: The end of a leader that stops or hands over, as its node announces it to all clients.
_LEADER_STOPS: Final = b"broker forced connection closure with reason 'shutdown'"

_TEMPORARY: Final = "/temp-queue"


class StompStage(Enum):
    """The progress of the connection."""

    LOGIN = "login"
    OPEN = "open"
    HELD = "held"
    RESTORING = "restoring"
    PASSING = "passing"
    OVER = "over"


class RelayedStompConnection:
    """Owns what is remembered of one connection; see ``Resumable`` for its interface.

    ``login_limit`` is the number of bytes that are kept of a client that has not logged in. ``default_vhost`` is the
    virtual host of clients that name none; with ``activemq`` also of those that name one that does not exist.
    """

    def __init__(self, login_limit: int = 64 * 1024, default_vhost: str = "/", *, activemq: bool = False) -> None:
        self.stage = StompStage.LOGIN
        self.has_leader_ended = False
        self.awaits_client = False
        self.route: ClientRoute | None = None
        self.is_rerouted = False
        self.heartbeat_s = 0
        self._default_vhost = default_vhost
        self._activemq = activemq
        self._version = Version.V10
        self._connect = b""
        self._session = ""
        self._former: set[str] = set()
        self._requests = UnreceiptedFrames()
        self._subscriptions = RelayedSubscriptions()
        self._client = FrameStream(login_limit)
        self._login_limit = login_limit
        self._leader = FrameStream()
        self.waiting = RelayedBytes()
        self._is_closing = False
        self._has_temporary = False
        self._has_question = False

    @property
    def is_full(self) -> bool:
        """See ``Resumable``. An open transaction is no reason: its end must be read."""
        requests = self._requests
        if self.stage is StompStage.LOGIN and self._connect:
            return requests.waiting_size + requests.transactions_size + self._client.kept > self._login_limit
        return requests.waiting_size > MOST_KEPT and self.stage is not StompStage.PASSING

    @property
    def is_restoring(self) -> bool:
        """See ``Resumable``."""
        return self.stage is StompStage.RESTORING

    @property
    def is_closing(self) -> bool:
        """See ``Resumable``."""
        return self._is_closing

    @property
    def is_over(self) -> bool:
        """See ``Resumable``."""
        return self.stage is StompStage.OVER

    @property
    def awaits_answer(self) -> bool:
        """See ``Resumable``."""
        return self._has_question

    # From the client

    def receive_from_client(self, data: bytes) -> None:
        """See ``Resumable``."""
        if self.stage is StompStage.PASSING:
            self.waiting.for_leader.append(data)
        elif self.stage in (StompStage.HELD, StompStage.RESTORING):
            self._keep_early(data)
        elif self.stage is not StompStage.OVER:
            self._pass_frames(self._client, data, self.waiting.for_leader, self._from_client)

    def _keep_early(self, data: bytes) -> None:
        """Keep what a client sends while no leader takes it; heartbeats alone are dropped."""
        if not self._client.kept and not self.waiting.early:
            if not data.strip(b"\r\n"):
                return
            self._has_question |= _asks(data, self._version)
        self.waiting.early.append(data)

    def _from_client(self, size: int, data: bytes) -> bytes:
        """Note a frame of the client; return what the leader gets."""
        head = FrameHead(data, size)
        if not self._connect:
            is_explicit = head.verb in (b"CONNECT", b"STOMP")
            if self.route is not None:
                self.is_rerouted = not self.route.leads_to(self._vhost_of(head if is_explicit else None, self.route))
            if not is_explicit or self._client.is_cut:
                self.stage = StompStage.PASSING
            self._connect = data
            self._client.limit = 0  # more than the limit waits in the client: ``is_full``
            return data
        transaction = head.value("transaction", self._version)
        receipt = head.value("receipt", self._version)
        if head.verb in (b"ACK", b"NACK") and self._is_stale(head):
            return self._refuse_stale(transaction, receipt)
        self._note(head, size, data, receipt)
        if transaction is not None:
            self._note_transaction(head.verb, size, data, transaction)
        if receipt is not None and head.verb != b"SUBSCRIBE":
            is_send = head.verb == b"SEND" and transaction is None and not self._client.is_cut
            self._requests.awaits_receipt(receipt, data if is_send else None)
        return data

    def _vhost_of(self, head: FrameHead | None, route: ClientRoute) -> str:
        """Return the virtual host of a client, as the leader will choose it; without a CONNECT it is the default."""
        named = None if head is None else head.value("host")
        if named is None or (self._activemq and not route.exists(named)):
            return self._default_vhost
        return named

    def _note(self, head: FrameHead, size: int, data: bytes, receipt: str | None) -> None:
        """Note what a frame changes."""
        verb = head.verb
        if verb == b"SUBSCRIBE":
            self._subscriptions.begin(self._subscriptions.key(head, self._version), data, size, receipt)
        elif verb == b"UNSUBSCRIBE":
            self._subscriptions.end(self._subscriptions.key(head, self._version))
        elif verb == b"DISCONNECT":
            self._is_closing = True
        elif verb == b"SEND" and (head.value("reply-to", self._version) or "").startswith(_TEMPORARY):
            self._has_temporary = True

    def _note_transaction(self, verb: bytes, size: int, data: bytes, transaction: str) -> None:
        """Note a frame of a transaction."""
        if verb == b"BEGIN":
            self._requests.begin(transaction, without_headers(data, size, "receipt"))
        elif verb in (b"COMMIT", b"ABORT"):
            self._requests.end(transaction)
        elif verb == b"SEND" and not self._client.is_cut and self._requests.transactions_size <= MOST_KEPT:
            self._requests.add(transaction, without_headers(data, size, "receipt"))
        else:
            self._requests.add(transaction, None)

    def _is_stale(self, head: FrameHead) -> bool:
        """Whether an ACK or NACK refers to a delivery of a former leader."""
        if not self._former:
            return False
        name = "id" if self._version is Version.V12 else "message-id"
        parts = (head.value(name, self._version) or "").rsplit("@@", 2)
        return len(parts) == 3 and parts[1] in self._former

    def _refuse_stale(self, transaction: str | None, receipt: str | None) -> bytes:
        """Drop an acknowledgement that the leader would not know: the message comes again.

        A receipt, or a transaction, would promise that it does not.
        """
        if transaction is not None or receipt is not None:
            self.give_up("the leader of the cluster changed: the acknowledged message is delivered again")
        return b""

    # From the leader

    def receive_from_leader(self, data: bytes) -> None:
        """See ``Resumable``."""
        if self.stage is StompStage.PASSING:
            self.waiting.for_client.append(data)
        elif self.stage not in (StompStage.HELD, StompStage.OVER):
            self._pass_frames(self._leader, data, self.waiting.for_client, self._from_leader)

    def _from_leader(self, size: int, data: bytes) -> bytes:
        """Note a frame of the leader; return what the client gets."""
        if self.has_leader_ended or self.stage is StompStage.OVER:
            return b""
        verb = data[: data.find(b"\n")].rstrip(b"\r")
        if verb == b"MESSAGE":
            self._note_offset(size, data)
        elif verb == b"RECEIPT":
            receipt = FrameHead(data, size).value("receipt-id", self._version) or ""
            self._requests.received(receipt)
            self._subscriptions.received(receipt)
        elif verb == b"CONNECTED":
            return self._connected(FrameHead(data, size), data)
        elif verb == b"ERROR":
            return self._failed(FrameHead(data, size), size, data)
        return data

    def _note_offset(self, size: int, data: bytes) -> None:
        if data.find(b"\nx-stream-offset:", 0, size) >= 0:
            head = FrameHead(data, size)
            offset = head.value(OFFSET, self._version) or ""
            key = head.value("subscription", self._version) or head.value("destination", self._version)
            if key is not None and offset.isdecimal():
                self._subscriptions.reached(key, int(offset))

    def _connected(self, head: FrameHead, data: bytes) -> bytes:
        if self.stage not in (StompStage.LOGIN, StompStage.RESTORING) or not self._connect:
            raise StompError("Invalid frame", "A CONNECTED that is not due")
        self._session = head.value("session") or ""
        if self.stage is StompStage.RESTORING:
            self._go_on()
            return b""
        self._version = Version(head.value("version") or "1.0")
        beats = (head.value("heart-beat") or "0,0").split(",")
        self.heartbeat_s = int(beats[0]) // 1000
        self.stage = StompStage.OPEN
        return data

    def _failed(self, head: FrameHead, size: int, data: bytes) -> bytes:
        """Leave a leader that ends in order; pass on any other end."""
        is_stopping = head.value("message") == "connection_forced" and data[size:].startswith(_LEADER_STOPS)
        if is_stopping and self.stage in (StompStage.OPEN, StompStage.RESTORING) and not self._is_closing:
            self.has_leader_ended = True
            return b""
        self.stage = StompStage.PASSING
        return data

    # Frames

    def _pass_frames(
        self, stream: FrameStream, data: bytes, outgoing: list[bytes], note: Callable[[int, bytes], bytes]
    ) -> None:
        """Pass whole frames on, or what takes their place; keep the rest until it is whole."""
        try:
            for size, frame in stream.cut(data):
                is_followed = size and self.stage is not StompStage.PASSING
                outgoing.append(self._noted(note, size, frame) if is_followed else frame)
        except StompError:
            self.stage = StompStage.PASSING
        if self.stage is StompStage.PASSING:
            self.waiting.for_leader.append(self._client.take())
            self.waiting.for_client.append(self._leader.take())

    def _noted(self, note: Callable[[int, bytes], bytes], size: int, frame: bytes) -> bytes:
        try:
            return note(size, frame)
        except (StompError, ValueError):
            self.stage = StompStage.PASSING
            return frame

    # Another leader

    def leader_lost(self) -> bool:
        """See ``Resumable``."""
        self.waiting.for_leader.clear()
        self.has_leader_ended = False
        if self.stage not in (StompStage.OPEN, StompStage.HELD, StompStage.RESTORING) or self._is_closing:
            return False
        is_cut = self._leader.is_cut or self._client.is_cut
        if is_cut or self._has_temporary or not self._requests.can_be_repeated:
            self.give_up("the leader of the cluster changed, and the connection could not be moved to the next one")
            return False
        self._leader.take()
        if self._session:
            self._former.add(self._session)
        self._has_question |= self._subscriptions.await_receipts
        self.stage = StompStage.HELD
        return True

    def leader_found(self) -> None:
        """See ``Resumable``."""
        if self.stage in (StompStage.LOGIN, StompStage.PASSING):
            return  # rerouted: what the client has sent waits for this leader
        self.stage = StompStage.RESTORING
        self.waiting.for_leader.append(self._connect)

    def _go_on(self) -> None:
        """Continue where the former leader ended: with the subscriptions, and what it did not answer."""
        self.stage = StompStage.OPEN
        self._has_question = False
        self.waiting.for_leader.append(self._subscriptions.again())
        self.waiting.for_leader.append(self._requests.again())
        if early := self.waiting.take_early():
            self.receive_from_client(early)

    def give_up(self, reason: str) -> None:
        """See ``Resumable``."""
        if self.stage in (StompStage.OPEN, StompStage.HELD, StompStage.RESTORING):
            headers = (("message", "connection_forced"), ("content-type", "text/plain"))
            self.waiting.for_client.append(encode("ERROR", headers, self._version, reason.encode()))
        self.stage = StompStage.OVER
        self.waiting.for_leader.clear()

    def beat(self) -> None:
        """See ``Resumable``."""
        if self.stage in (StompStage.HELD, StompStage.RESTORING):
            self.waiting.for_client.append(HEARTBEAT)

    def tell_held(self) -> None:
        """See ``Resumable``. STOMP has no frame for it: receipts come late."""


def _asks(data: bytes, version: Version) -> bool:
    """Whether frames that a client sends want a receipt, other than for a publish, or are not valid."""
    try:
        heads = [FrameHead(frame, size) for size, frame in FrameStream().cut(data) if size]
        return any(head.verb != b"SEND" and head.value("receipt", version) is not None for head in heads)
    except (StompError, ValueError):
        return True
