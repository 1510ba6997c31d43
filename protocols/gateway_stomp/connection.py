"""The server side of one STOMP connection as a machine: bytes in, kernel calls, frames out; no sockets, no clock.

CONNECT, or STOMP, comes first and once. From then on what a frame may ask for is a row of a table; SEND, which
outnumbers the others, goes past it. A client that breaks a rule, or is refused something, hears why in an ERROR frame
and is cut off (1.2, "ERROR").
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from gateway.access import Permissions, Principal
from gateway.kernel.broker.connections import ChannelInfo
from gateway.kernel.budget import LOOK_EVERY
from gateway.kernel.errors import GatewayError, PreconditionFailed, ProtocolViolation, Refused
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.net.machine import Driver, Machine, Phase
from gateway.net.outbox import Outbox
from gateway.net.turn import TurnParticipant
from gateway_stomp.conversation import Conversation
from gateway_stomp.decoder import FrameDecoder
from gateway_stomp.errors import StompError, error_of
from gateway_stomp.frames import Head, encode
from gateway_stomp.handshake import Handshake
from gateway_stomp.listener_context import StompContext
from gateway_stomp.state import State
from gateway_stomp.versions import SUPPORTED, Version

#: Bytes a client may send ahead while somebody is asked who it is.
_EARLY_LIMIT: Final = 64 * 1024

#: A client of whose frame so many bytes wait for the rest publishes: no other frame is that large. Alarms hold it back.
_LARGE_FRAME: Final = 64 * 1024


class Connection(Machine):
    """One client's conversation. Owns its outbox; ``conversation`` is what it has once it is in its virtual host."""

    def __init__(self, settings: StompContext, driver: Driver, participant: TurnParticipant) -> None:
        self.settings = settings
        self.driver = driver
        self.outbox = Outbox(participant)
        self.state = State.GREETING
        self.has_published = False
        self.is_busy = False
        self.is_held = False
        self._budget = settings.broker.journal.budget
        self.opening = Handshake(settings.access_of)
        self.conversation: Conversation | None = None
        self._decoder = FrameDecoder(
            settings.max_frame_size_unauthenticated,
            settings.max_headers_size,
            settings.max_headers,
            settings.max_header_size,
            settings.max_body_size,
        )
        self._postponed: tuple[Head, bytes] | None = None
        self._farewell: str | None = None
        self._is_turning = False

    # What the edge asks

    @property
    def phase(self) -> Phase:
        """How far the connection got."""
        return self.state.phase

    @property
    def vhost(self) -> VirtualHost | None:
        """The virtual host it is in, once it is."""
        return None if self.conversation is None else self.conversation.scope.vhost

    @property
    def user_name(self) -> str:
        """Who is connected, empty before that is known."""
        return self.opening.user_name

    @property
    def has_unsettled(self) -> bool:
        """Whether deliveries wait for the client's acknowledgement."""
        return self.conversation is not None and self.conversation.subscribing.unsettled > 0

    def channel_infos(self) -> list[ChannelInfo]:
        """Tell what a listing shows in place of channels."""
        return [] if self.conversation is None else [self.conversation.info()]

    # Bytes

    def receive(self, data: bytes) -> None:
        """Feed bytes from the peer, cut anywhere."""
        if self.phase is Phase.LEAVING:
            self.is_held = False
            return
        if self.is_held:
            self.is_held = False
            if self.state is State.OPEN:
                self._decoder.go_on()
        budget = self._budget
        try:
            for head, body in self._decoder.feed(data):
                if budget.work >= LOOK_EVERY and budget.is_spent():
                    self.is_held = True
                    self._decoder.stop()
                if head.verb == "SEND" and self.state is State.OPEN:
                    self._send(head, body)
                else:
                    self._perform(head, body)
        except GatewayError as error:
            self.fail(error)
        if self.state is State.JUDGING and self._decoder.kept > _EARLY_LIMIT:
            self.fail(StompError("Frame too large", "Too much was sent before the connection was accepted"))
        elif not self.has_published and self.state is State.OPEN and self._decoder.kept > _LARGE_FRAME:
            self.publishing()

    def _perform(self, head: Head, body: bytes) -> None:
        """Act on a frame; where there is no row for it now, it is out of order."""
        perform = _FRAMES.get((self.state, head.verb))
        try:
            if perform is None:
                self._refuse_order(head, body)
                return
            if body and not head.may_have_body and self.opening.version is not Version.V10:
                raise StompError("Invalid frame", f"{head.verb} must not have a body")
            perform(self, head, body)
        except (Refused, ProtocolViolation) as error:
            self.fail(error, head)

    def _send(self, head: Head, body: bytes) -> None:
        """Publish, or hold for a transaction."""
        conversation = self.conversation
        assert conversation is not None
        try:
            name = head.headers.get("transaction")
            if name is None:
                conversation.publishing.send(head, body)
            else:
                conversation.transactions.send(name, head, body)
        except (Refused, ProtocolViolation) as error:
            self.fail(error, head)

    def _refuse_order(self, head: Head, body: bytes) -> None:
        """Refuse a frame that must not come now; before CONNECT it may stand for one, where that is allowed."""
        if self.state is State.OPEN:
            if head.verb in ("CONNECT", "STOMP"):
                raise StompError("Illegal command", "The connection is open already")
            detail = f'Could not interpret command "{head.verb[:80]}"\n'
            raise StompError("Bad command", detail, "Could not interpret the command")
        if not self.settings.implicit_connect:
            raise StompError("Illegal command", "You must log in using CONNECT first")
        self._postponed = head, body
        self._judge(lambda: self.opening.connect_implicitly(self))

    def go_on(self) -> None:
        """Look at what came while somebody was asked; called when the answer is there, maybe out of turn."""
        if self.state is not State.OPEN:
            return
        self._decoder.go_on()
        if self._postponed is not None:
            (head, body), self._postponed = self._postponed, None
            if head.verb == "SEND":
                self._send(head, body)
            else:
                self._perform(head, body)
        self.receive(b"")

    def opened(self, conversation: Conversation) -> None:
        """The client is in its virtual host."""
        self.conversation = conversation
        self.state = State.OPEN
        self._decoder.version = self.opening.version
        self._decoder.limit = self.settings.max_frame_size
        self.driver.opened()

    # Turns

    def awaits_turn(self) -> None:
        """Something was published in this turn whose receipt is due at its end."""
        if not self._is_turning:
            self._is_turning = True
            self.outbox.defer_confirms()

    def end_turn(self) -> None:
        """Let receipts that are due into the outbox."""
        if self.conversation is None:
            return
        if self._is_turning:
            self._is_turning = False
            self.conversation.publishing.end_turn()
        if self.state is State.LEAVING:
            self._depart()

    def resume(self) -> None:
        """Serve the subscriptions that waited because the way to the peer was full."""
        if self.conversation is not None:
            self.conversation.subscribing.resume()

    def publishing(self) -> None:
        """The client publishes: it is held back from now on when publishers are."""
        if not self.has_published:
            self.has_published = True
            self.driver.publishing()

    @property
    def permissions(self) -> Permissions:
        """What the client may do now. :raises AccessRefused: when it may do nothing here any more."""
        return self.opening.permissions

    @property
    def principal(self) -> Principal:
        """Who it is."""
        assert self.opening.principal is not None
        return self.opening.principal

    def fail_confirms(self) -> None:
        """Refuse every publish that waits for its receipt."""
        if self.conversation is not None:
            self.conversation.publishing.fail()

    def mind_consumers(self) -> None:
        """End the connection if its client does not acknowledge in time; called now and then."""
        if self.conversation is None:
            return
        now_s = self.settings.broker.clock.monotonic_s()
        limit_ms = self.conversation.subscribing.exhausted_ms(now_s, self.settings.consumer_timeout_ms)
        if limit_ms is not None:
            detail = f"delivery acknowledgement on channel 1 timed out. Timeout value used: {limit_ms} ms. "
            detail += "This timeout value can be configured, see consumers doc guide to learn more"
            self.fail(PreconditionFailed(detail))

    # Requests

    def _connect(self, head: Head, body: bytes) -> None:
        self._judge(lambda: self.opening.connect(self, head.headers))

    def _judge(self, ask: Callable[[], None]) -> None:
        """Ask who this is; what comes meanwhile waits."""
        self._decoder.stop()
        ask()
        if self.state is State.OPEN:
            self._decoder.go_on()

    def _subscribe(self, head: Head, body: bytes) -> None:
        assert self.conversation is not None
        queue = self.conversation.subscribing.subscribe(head.headers)
        self._answer(head)
        queue.dispatch()  # the receipt comes before the first message, as with RabbitMQ

    def _unsubscribe(self, head: Head, body: bytes) -> None:
        assert self.conversation is not None
        self.conversation.subscribing.unsubscribe(head.headers)
        self._answer(head)

    def _ack(self, head: Head, body: bytes) -> None:
        assert self.conversation is not None
        name = head.headers.get("transaction")
        if name is not None:
            self.conversation.transactions.settle(name, head.verb, head.headers)
        elif head.verb == "ACK":
            self.conversation.settling.accept(head.headers)
        else:
            self.conversation.settling.settle(head.verb, head.headers)
        self._answer(head)

    def _begin(self, head: Head, body: bytes) -> None:
        assert self.conversation is not None
        self.conversation.transactions.begin(head.headers)
        self._answer(head)

    def _commit(self, head: Head, body: bytes) -> None:
        """Commit; a receipt says that every message is safe, so there is none when a queue refused one."""
        assert self.conversation is not None
        if self.conversation.transactions.commit(head.headers):
            self._answer(head)

    def _abort(self, head: Head, body: bytes) -> None:
        assert self.conversation is not None
        self.conversation.transactions.abort(head.headers)
        self._answer(head)

    def _disconnect(self, head: Head, body: bytes) -> None:
        """Let the client go: it hears last that all it sent was taken, so receipts come before (1.2, "DISCONNECT")."""
        assert self.conversation is not None
        self.state = State.LEAVING
        self._decoder.stop()
        self._farewell = head.headers.get("receipt")
        self.conversation.leave()
        self.outbox.defer_confirms()

    def _depart(self) -> None:
        """Say the last word once nothing else is to be said."""
        assert self.conversation is not None
        if self.conversation.publishing.unanswered:
            return
        if self._farewell is not None:
            self.outbox.promise(self.conversation.scope.journal.pending_lsn)
            self.conversation.scope.receipt(self._farewell)
        self.close()

    def _answer(self, head: Head) -> None:
        """Write the receipt of a frame that was done; it leaves once what that recorded is durable."""
        receipt = head.headers.get("receipt")
        if receipt is not None:
            assert self.conversation is not None
            self.outbox.promise(self.conversation.scope.journal.pending_lsn)
            self.conversation.scope.receipt(receipt)

    # The end

    def fail(self, error: GatewayError, head: Head | None = None) -> None:
        """Tell the client what went wrong, and with which frame, and close (1.2, "ERROR")."""
        message, detail = error_of(error)
        receipt = None if head is None else head.headers.get("receipt")
        logged = error.logged if isinstance(error, StompError) else detail
        self._end(message, detail, () if receipt is None else (("receipt-id", receipt),), logged)

    def withdraw(self, tag: str, reason: str) -> None:
        """A subscription ended because its queue is gone; there is no other way to tell than an ERROR."""
        if self.conversation is not None and self.state is State.OPEN:
            id = self.conversation.subscribing.withdrawn(tag)
            if id is not None:
                self._end("Server cancelled subscription", reason, (("subscription", id),))

    def force_close(self, reason: str) -> None:
        """End the connection from this side."""
        self._end("connection_forced", reason)

    def fault(self) -> None:
        """End the connection because something of ours broke."""
        self._end("Processing error", "Processing error")

    def _end(
        self, message: str, detail: str, told: tuple[tuple[str, str], ...] = (), logged: str | None = None
    ) -> None:
        if self.state is State.CLOSED:
            return
        self.driver.log("connection closing", reason=f"{message}: {logged or detail}".rstrip())
        headers = (("message", message), ("content-type", "text/plain"), ("version", SUPPORTED), *told)
        self.outbox.write(encode("ERROR", headers, self.opening.version, detail.encode(errors="replace")))
        self.close()

    def close(self) -> None:
        """Close the transport; what the client held is let go of at once."""
        if self.state is not State.CLOSED:
            self.state = State.CLOSED
            self._decoder.stop()
            self._let_go()
            self.driver.hang_up()

    def lost(self) -> None:
        """The transport is gone: release everything."""
        self.state = State.CLOSED
        self._let_go()
        self.conversation = None  # its parts know the connection

    def _let_go(self) -> None:
        self.outbox.is_open = False
        if self.conversation is not None:
            self.conversation.close()


Perform: TypeAlias = Callable[[Connection, Head, bytes], None]

#: What a connection does, by state and verb. A pair that is absent is out of order; SEND has a way of its own.
_FRAMES: Final[Mapping[tuple[State, str], Perform]] = {
    (State.GREETING, "CONNECT"): Connection._connect,
    (State.GREETING, "STOMP"): Connection._connect,
    (State.OPEN, "SUBSCRIBE"): Connection._subscribe,
    (State.OPEN, "UNSUBSCRIBE"): Connection._unsubscribe,
    (State.OPEN, "ACK"): Connection._ack,
    (State.OPEN, "NACK"): Connection._ack,
    (State.OPEN, "BEGIN"): Connection._begin,
    (State.OPEN, "COMMIT"): Connection._commit,
    (State.OPEN, "ABORT"): Connection._abort,
    (State.OPEN, "DISCONNECT"): Connection._disconnect,
}
