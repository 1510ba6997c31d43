"""State machine of the server side of one STOMP connection: bytes in, kernel calls, frames out; no I/O, no clock.

CONNECT or STOMP comes first and once. After that the table in ``requests.py`` defines which frames are allowed and what
they do; SEND, the most frequent one, bypasses the table. After a violation or a refusal the client receives an ERROR
frame and is disconnected (1.2, "ERROR").
"""

from collections.abc import Callable
from typing import Final

from gateway.access import Permissions, PermissionUnknown, Principal
from gateway.kernel.broker.connections import ChannelInfo, PeerLoad
from gateway.kernel.budget import WORK_PER_CLOCK_READING
from gateway.kernel.errors import GatewayError, PreconditionFailed, ProtocolViolation, Refused
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import ConsumedQueue
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
from gateway_stomp.requests import REQUESTS
from gateway_stomp.state import State
from gateway_stomp.versions import SUPPORTED, Version

#: Bytes a client may send before its authentication is decided.
_EARLY_LIMIT: Final = 64 * 1024

#: A client counts as a publisher when this many bytes of an unfinished frame wait: only a SEND is that large. Alarms
#: then hold it back.
_LARGE_FRAME: Final = 64 * 1024

#: The work of a frame other than SEND, in units of the time budget. One read may bring a thousand acknowledgements.
_FRAME_WORK: Final = 8

#: The work of a SEND. One read may bring a thousand, and each takes up to 20 microseconds as source, 5 compiled.
_SEND_WORK: Final = 2

#: Looked up once, for each frame: access to an enumeration's member is slow where the source is interpreted.
_OPEN: Final = State.OPEN
_AUTHENTICATING: Final = State.AUTHENTICATING


class Connection(Machine):
    """One client connection. Owns its outbox; ``conversation`` holds its parts once the virtual host is open."""

    def __init__(self, settings: StompContext, driver: Driver, participant: TurnParticipant) -> None:
        self.settings = settings
        self.driver = driver
        self.outbox = Outbox(participant)
        self.state = State.GREETING
        self.has_published = False
        self.is_busy = False
        self.is_held = False
        self._budget = settings.broker.journal.budget
        self.handshake = Handshake(settings.access_of)
        self.conversation: Conversation | None = None
        self._decoder = FrameDecoder(
            settings.max_frame_size_unauthenticated,
            settings.max_headers_size,
            settings.max_headers,
            settings.max_header_size,
            settings.max_body_size,
        )
        self._postponed: tuple[Head, bytes] | None = None
        self._receipt_of_disconnect: str | None = None

    # Used by the transport side

    @property
    def phase(self) -> Phase:
        """The progress of the connection; time limits depend on it."""
        return self.state.phase

    @property
    def vhost(self) -> VirtualHost | None:
        """The open virtual host, ``None`` before that."""
        return None if self.conversation is None else self.conversation.scope.vhost

    @property
    def user_name(self) -> str:
        """The authenticated user's name, empty before the login."""
        return self.handshake.user_name

    @property
    def surface(self) -> str:
        """The protocol's name in the audit record."""
        return "STOMP"

    @property
    def expires_at_s(self) -> float:
        """The Unix time at which the client's token expires; 0 is never."""
        return 0.0 if self.handshake.principal is None else self.handshake.principal.expires_at_s

    @property
    def has_unsettled(self) -> bool:
        """Whether deliveries wait for the client's acknowledgement."""
        return self.conversation is not None and self.conversation.subscribing.unsettled > 0

    def load(self) -> PeerLoad | None:
        """Add what was counted to the totals of the virtual host; return what the connection holds."""
        return None if self.conversation is None else self.conversation.load()

    def unsettled(self) -> list[tuple[ConsumedQueue, QueuedMessage, int]]:
        """Return the unsettled deliveries of all subscriptions."""
        return [] if self.conversation is None else self.conversation.subscribing.held()

    def channel_infos(self) -> list[ChannelInfo]:
        """Return the connection's only channel for listings."""
        return [] if self.conversation is None else [self.conversation.info()]

    # Bytes

    @property
    def awaited(self) -> int:
        """The size of the frame of which a part was received, at least; 0 without one."""
        return self._decoder.awaited

    def receive(self, data: bytes) -> None:
        """Handle bytes from the peer, which may be cut anywhere."""
        if self.state is State.LEAVING or self.state is State.CLOSED:
            self.is_held = False
            return
        if self.is_held and not self.is_busy:
            self.is_held = False
            if self.state is _OPEN:
                self._decoder.go_on()
                self._perform_postponed()
        budget, decoder = self._budget, self._decoder
        try:
            decoder.start(data)
            while decoder.next():
                if decoder.head.verb == "SEND" and self.state is _OPEN:
                    budget.work += _SEND_WORK
                    self._send(decoder.head, decoder.body)
                else:
                    budget.work += _FRAME_WORK
                    self._perform(decoder.head, decoder.body)
                if budget.work >= WORK_PER_CLOCK_READING and budget.is_spent() and self.state is not _AUTHENTICATING:
                    self.is_held = True
                    decoder.stop()
        except GatewayError as error:
            self.fail(error)
        if self.state is _AUTHENTICATING and self._decoder.kept > _EARLY_LIMIT:
            self.fail(StompError("Frame too large", "Too many bytes were sent before the connection was accepted"))
        elif not self.has_published and self.state is _OPEN and self._decoder.kept > _LARGE_FRAME:
            self.publishing()

    def _perform(self, head: Head, body: bytes) -> None:
        """Handle a frame; one without a row in the table connects or is out of order."""
        request = REQUESTS.get(head.verb) if self.state is _OPEN else None
        try:
            if request is None:
                self._connect(head, body)
                return
            if body:
                self._refuse_body(head)
            assert self.conversation is not None
            request(self.conversation, head)
        except PermissionUnknown as unknown:
            self._wait_for_permission(unknown, head, body)
        except (Refused, ProtocolViolation) as error:
            self.fail(error, head)

    def _send(self, head: Head, body: bytes) -> None:
        """Publish a message, or hold it for a transaction."""
        conversation = self.conversation
        assert conversation is not None
        try:
            if head.transaction is None:
                conversation.publishing.send(head, body)
            else:
                conversation.transactions.send(head.transaction, head, body)
        except PermissionUnknown as unknown:
            self._wait_for_permission(unknown, head, body)
        except (Refused, ProtocolViolation) as error:
            self.fail(error, head)

    def _wait_for_permission(self, unknown: PermissionUnknown, head: Head, body: bytes) -> None:
        """Hold a frame, and the input behind it, until its permission is known."""
        self._postponed = head, body
        self._decoder.stop()
        self.wait_for(unknown)

    def _perform_postponed(self) -> None:
        """Handle the frame that waited for the login, or for a permission."""
        if self._postponed is not None:
            (head, body), self._postponed = self._postponed, None
            if head.verb == "SEND":
                self._send(head, body)
            else:
                self._perform(head, body)

    def _refuse_order(self, head: Head, body: bytes) -> None:
        """Refuse a frame in the wrong state; before CONNECT it may connect implicitly, if that is enabled."""
        if self.state is State.OPEN:
            if head.verb in ("CONNECT", "STOMP"):
                raise StompError("Illegal command", "The connection is already open")
            detail = f'Could not interpret command "{head.verb[:80]}"\n'
            raise StompError("Bad command", detail, "Could not interpret the command")
        if not self.settings.implicit_connect:
            raise StompError("Illegal command", "You must log in using CONNECT first")
        self._postponed = head, body
        self._authenticate(lambda: self.handshake.connect_implicitly(self))

    def resume_reading(self) -> None:
        """Continue with the input that arrived during the authentication, in a turn and within its budget."""
        if self.state is not State.OPEN:
            return
        if self._decoder.kept or self._postponed is not None:
            self.is_held = True
            self.driver.go_on()
        else:
            self._decoder.go_on()

    def opened(self, conversation: Conversation) -> None:
        """Start the conversation: the virtual host is open."""
        self.conversation = conversation
        self.state = State.OPEN
        self._decoder.version = self.handshake.version
        self._decoder.limit = self.settings.max_frame_size
        self.driver.opened()

    # Turns

    def answered(self) -> None:
        """Send the last receipt of a client that disconnects, once no other receipt is due."""
        if self.state is State.LEAVING:
            self._send_last_receipt()

    def resume(self) -> None:
        """Resume the subscriptions that waited while the outbox was full."""
        if self.conversation is not None:
            self.conversation.subscribing.resume()

    @property
    def permissions(self) -> Permissions:
        """The user's current permissions. :raises AccessRefused: when access to the virtual host was revoked."""
        return self.handshake.permissions

    @property
    def principal(self) -> Principal:
        """The authenticated user."""
        assert self.handshake.principal is not None
        return self.handshake.principal

    def fail_confirms(self) -> None:
        """Refuse every publish that waits for its receipt."""
        if self.conversation is not None:
            self.conversation.publishing.fail()

    def check_consumer_timeouts(self) -> None:
        """End the connection if a delivery exceeds its acknowledgement timeout; called periodically."""
        if self.conversation is None:
            return
        now_s = self.settings.broker.clock.monotonic_s()
        limit_ms = self.conversation.subscribing.exceeded_timeout_ms(now_s, self.settings.consumer_timeout_ms)
        if limit_ms is not None:
            detail = f"delivery acknowledgement on channel 1 timed out. Timeout value used: {limit_ms} ms. "
            detail += "This timeout value can be configured, see consumers doc guide to learn more"
            self.fail(PreconditionFailed(detail))

    # The beginning

    def _connect(self, head: Head, body: bytes) -> None:
        """Connect, or refuse a frame that is out of order."""
        if self.state is not State.GREETING or head.verb not in ("CONNECT", "STOMP"):
            self._refuse_order(head, body)
            return
        if body:
            self._refuse_body(head)
        self._authenticate(lambda: self.handshake.connect(self, head.headers))

    def _refuse_body(self, head: Head) -> None:
        """Refuse the body of a frame that must not have one; STOMP 1.0 allows it."""
        if not head.may_have_body and self.handshake.version is not Version.V10:
            raise StompError("Invalid frame", f"{head.verb} must not have a body")

    def _authenticate(self, ask: Callable[[], None]) -> None:
        """Start the authentication; input waits until it is decided."""
        self._decoder.stop()
        ask()

    def disconnect(self, receipt: str | None) -> None:
        """Disconnect the client; its last receipt confirms all that it sent, so the others come before (1.2,
        "DISCONNECT").
        """
        assert self.conversation is not None
        self.state = State.LEAVING
        self._decoder.stop()
        self._receipt_of_disconnect = receipt
        self.conversation.leave()
        self._send_last_receipt()

    def _send_last_receipt(self) -> None:
        """Send the last receipt when no other output is due, and close."""
        assert self.conversation is not None
        if self.conversation.publishing.unanswered:
            return
        self.conversation.scope.answer(self._receipt_of_disconnect)
        self.close()

    # The end

    def fail(self, error: GatewayError, head: Head | None = None) -> None:
        """Send an ERROR frame with the receipt-id of the frame at fault, and close (1.2, "ERROR")."""
        message, detail = error_of(error)
        receipt = None if head is None else head.receipt
        logged = error.logged if isinstance(error, StompError) else detail
        self._end(message, detail, () if receipt is None else (("receipt-id", receipt),), logged)

    def refuse(self, error: GatewayError, head: Head) -> None:
        """Refuse a frame in a later turn; repeat it instead once a permission is known that is missing."""
        if self.state is State.CLOSED:
            return
        if isinstance(error, PermissionUnknown):
            self._wait_for_permission(error, head, b"")
        else:
            self.fail(error, head)

    def subscription_cancelled(self, tag: str, reason: str) -> None:
        """Report a subscription whose queue was deleted; STOMP has no other way than an ERROR frame."""
        if self.conversation is not None and self.state is State.OPEN:
            id = self.conversation.subscribing.remove_cancelled(tag)
            if id is not None:
                self._end("Server cancelled subscription", reason, (("subscription", id),))

    def force_close(self, reason: str) -> None:
        """Close the connection from the server's side."""
        self._end("connection_forced", reason)

    def fault(self) -> None:
        """End the connection after an internal error."""
        self._end("Processing error", "Processing error")

    def _end(
        self, message: str, detail: str, extra: tuple[tuple[str, str], ...] = (), logged: str | None = None
    ) -> None:
        if self.state is State.CLOSED:
            return
        self.driver.log("connection closing", reason=f"{message}: {logged or detail}".rstrip())
        headers = (("message", message), ("content-type", "text/plain"), ("version", SUPPORTED), *extra)
        self.outbox.write(encode("ERROR", headers, self.handshake.version, detail.encode(errors="replace")))
        self.close()

    def close(self) -> None:
        """Close the transport, and release at once what the client held."""
        if self.state is not State.CLOSED:
            self.state = State.CLOSED
            self._decoder.stop()
            self._release()
            self.driver.hang_up()

    def lost(self) -> None:
        """Release everything: the transport is closed."""
        self.state = State.CLOSED
        self._release()
        self.conversation = None  # its parts refer to the connection

    def _release(self) -> None:
        self.outbox.is_open = False
        if self.conversation is not None:
            self.conversation.close()
