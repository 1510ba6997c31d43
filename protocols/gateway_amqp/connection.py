"""State machine of the server side of one AMQP 0-9-1 connection: bytes in, kernel calls, frames out; no I/O, no clock.

The connection passes through a sequence of states; the methods on channel 0 are a table of (state, method). Frames of
other channels go to the channel. Errors close the channel or the connection, as in 1.8 of the specification.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from pamqp import commands
from pamqp.base import Frame

from gateway.access import PermissionUnknown
from gateway.kernel.broker.connections import PeerLoad
from gateway.kernel.budget import WORK_PER_CLOCK_READING, PendingWork
from gateway.kernel.errors import GatewayError, Refused
from gateway.kernel.queueing.consumer import Resumption
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.net.machine import EXPIRED, Driver, Machine, Phase
from gateway.net.outbox import Outbox
from gateway.net.turn import TurnParticipant
from gateway_amqp.blocked_notice import BlockedNotice
from gateway_amqp.channel import ACK, PUBLISH, Channel
from gateway_amqp.channels import Channels
from gateway_amqp.content import BODY, FRAME_END, HEADER, HEARTBEAT, METHOD, read_frame_head, whole_content
from gateway_amqp.control import greet, perform, perform_while_closing
from gateway_amqp.errors import (
    HARD,
    FrameError,
    octets,
    reply_code,
    reply_text,
    too_large,
    unexpected,
)
from gateway_amqp.holdings import Holdings
from gateway_amqp.identity import PeerIdentity
from gateway_amqp.incoming import IncomingBytes
from gateway_amqp.listener_context import AmqpContext
from gateway_amqp.methods import encode_method, index_of
from gateway_amqp.postponed_request import PostponedRequest
from gateway_amqp.state import State
from gateway_amqp.tables import MalformedField
from gateway_amqp.tuning import FRAME_MIN, Tuning

#: Units of work counted for a frame other than a complete publish or acknowledgement; most are declarations.
_METHOD_WORK: Final = WORK_PER_CLOCK_READING // 2

#: The work of an acknowledgement, without that of the deliveries that follow. One read may bring 3,000.
_ACK_WORK: Final = 2

#: Bytes a client may send before its authentication is decided: more than any handshake needs.
_EARLY_LIMIT: Final = 128 * 1024
HEARTBEAT_FRAME: Final = b"\x08\x00\x00\x00\x00\x00\x00\xce"


class Connection(Machine):
    """One client connection. Owns its channels and its outbox."""

    def __init__(self, settings: AmqpContext, driver: Driver, participant: TurnParticipant) -> None:
        self.settings = settings
        self.outbox = Outbox(participant)
        self.state = State.GREETING
        self.identity = PeerIdentity(settings)
        self.heartbeat_s = 0
        self.blocked_notice = BlockedNotice(self.identity, self.outbox)
        self.has_published = False
        self.is_busy = False
        self.is_held = False
        self._budget = settings.broker.journal.budget
        self.driver = driver
        self.holdings = Holdings(max(settings.max_held_size, settings.max_message_size))
        self._incoming = IncomingBytes()
        self._frame_max = FRAME_MIN
        self.channels = Channels(self, settings, self.outbox)
        self._resumption = Resumption()
        self._postponed: PostponedRequest | None = None

    # Used by channels and listings

    @property
    def phase(self) -> Phase:
        """The progress of the connection; time limits depend on it."""
        if self.state is State.OPEN:
            return Phase.OPEN
        return Phase.LEAVING if self.state in (State.CLOSING, State.CLOSED) else Phase.ENTERING

    @property
    def expires_at_s(self) -> float:
        """The Unix time at which the client's token expires; 0 is never."""
        return self.identity.expires_at_s

    def expire(self) -> None:
        """Close the connection: the client's token has expired (403)."""
        self.force_close(EXPIRED, 403)

    @property
    def has_unsettled(self) -> bool:
        """Whether a channel has unsettled deliveries."""
        return self.channels.has_unsettled

    @property
    def name(self) -> str:
        """The connection's name in listings, also as the owner of exclusive queues."""
        return self.driver.name

    @property
    def is_resumed(self) -> bool:
        """Whether a node of the cluster goes on with a connection that another leader had."""
        return self.driver.is_resumed

    @property
    def vhost(self) -> VirtualHost | None:
        """The open virtual host, ``None`` before that."""
        return self.identity.vhost

    @property
    def user_name(self) -> str:
        """The authenticated user's name, empty before the login."""
        return self.identity.user_name

    @property
    def surface(self) -> str:
        """The protocol's name in the audit record."""
        return "AMQP"

    @property
    def limits(self) -> tuple[int, int]:
        """The negotiated limits: the largest frame in bytes, and the number of channels."""
        return self._frame_max, self.channels.limit

    def load(self) -> PeerLoad | None:
        """Add what was counted to the totals of the virtual host; return what the connection holds."""
        return self.channels.load()

    def work_through(self, steps: Iterator[None], then: Callable[[], None]) -> None:
        """Run a channel's long request in slices, then call ``then`` to answer it; later frames wait for that."""
        self.is_busy = True
        self.settings.broker.clock.background.add(self._working(steps, then))

    def _working(self, steps: Iterator[None], then: Callable[[], None]) -> Iterator[None]:
        work = PendingWork()
        try:
            yield from self._budget.caused_by(work, steps)
            then()
        finally:
            work.finish()
            work.when_over(lambda _: self.request_ended())

    # Bytes in

    @property
    def awaited(self) -> int:
        """The size of the frame of which a part was received, at least; 0 without one."""
        return self._incoming.awaited

    def receive(self, data: bytes) -> None:
        """Handle bytes from the peer; everything they complete is done before this returns."""
        if self.state is State.CLOSED:
            self.is_held = False
            return
        if self.is_busy:
            self.is_held = True
            self._incoming.append(data)
            return
        if self._postponed is not None:
            postponed, self._postponed = self._postponed, None
            postponed.repeat(self)
            if self.is_busy:
                self._incoming.append(data)
                return
        if self.is_held:
            self.is_held = False
            whole = self._incoming.release(data)
        else:
            whole = self._incoming.add(data)
        if whole is not None:
            self._take(whole)

    def _take(self, data: bytes) -> None:
        position = 0
        if self.state is State.GREETING:
            if len(data) < 8:
                self._incoming.keep(data, 0, 8)
                return
            if not greet(self, data[:8]):
                return
            position = 8
        if self.state is State.AUTHENTICATING:
            self._incoming.keep(data, position, 1)
            if self._incoming.size > _EARLY_LIMIT:
                self.end(f"more than {_EARLY_LIMIT} bytes were sent before the login was decided")
            return
        try:
            self._read_frames(data, position)
        except GatewayError as error:
            self.fail(error)

    def _read_frames(self, data: bytes, position: int) -> None:
        """Handle frame after frame; the three most frequent types come first.

        A refusal closes the channel, a violation closes the connection, and reading continues behind the faulty frame,
        because the close-ok is still to come. After an error in the framing nothing more is read. Input left over when
        the turn's budget is spent is kept for a later turn.
        """
        end = len(data)
        channels = self.channels.open_by_number
        budget = self._budget
        while end - position >= 8:
            if budget.work >= WORK_PER_CLOCK_READING and budget.is_spent():
                self.is_held = True
                self._incoming.keep(data, position, 0)
                return
            if self.channels.repeating is not None:
                after = self._publish_repeated(self.channels.repeating, data, position, end)
                if after > position:
                    position = after
                    continue
            first = position
            kind, number, size = read_frame_head(data, position)
            stop = position + 7 + size
            if stop >= end or data[stop] != FRAME_END:
                if size > self._frame_max:
                    raise too_large(kind, size, self._frame_max)
                if stop >= end:
                    self._incoming.keep(data, position, size + 8)
                    return
                shown = octets(data[position + 7 : stop])
                wrong = f"{{invalid_frame_end_marker,{data[stop]}}}"
                raise FrameError(501, f"type {kind}, all octets = {shown}: {wrong}")
            payload = data[position + 7 : stop]
            position = stop + 1
            try:
                if kind == METHOD and (channel := channels.get(number)) is not None and channel.assembly is None:
                    index = payload[:4]
                    if index == PUBLISH:
                        content = whole_content(data, position, end, number)
                        if content is not None:
                            properties, body, position = content
                            channel.publish(payload, properties, body)
                            if channel.last.is_repeated:
                                channel.last.learn(data[first : position - len(body) - 1])
                                self.channels.repeating = channel
                            continue
                    elif index == ACK:
                        budget.work += _ACK_WORK
                        channel.ack(payload)
                        continue
                budget.work += _METHOD_WORK
                self._frame(kind, number, payload)
            except GatewayError as error:
                self.answer_error(error, kind, number, payload)
            if self.state is State.AUTHENTICATING:
                self._incoming.keep(data, position, 1)
                return
            if self.is_busy:
                self.is_held = True
                self._incoming.keep(data, position, 0)
                return
        if position < end:
            self._incoming.keep(data, position, 8)

    def _publish_repeated(self, channel: Channel, data: bytes, position: int, end: int) -> int:
        """Publish the messages at ``position`` that repeat the last one; return the position after them."""
        try:
            return channel.publish_repeated(data, position, end)
        except GatewayError as error:
            self.answer_error(error, METHOD, channel.number, PUBLISH)
            return channel.last.position

    def answer_error(self, error: GatewayError, kind: int, number: int, payload: bytes) -> None:
        """Answer a frame that failed; wait, if its permission is not known yet."""
        method = payload if kind == METHOD else PUBLISH
        if isinstance(error, PermissionUnknown):
            again = error.again or partial(self._frame, kind, number, payload)
            self._postponed = PostponedRequest(again, kind, number, payload)
            self.wait_for(error)
        elif isinstance(error, Refused):
            self.refuse(error, number, *index_of(method))
        elif isinstance(error, MalformedField):
            self.fail(FrameError(reply_code(error), str(error), *index_of(method)))
        else:
            self.fail(error)

    # Frames

    def _frame(self, kind: int, number: int, payload: bytes) -> None:
        if self.state is State.CLOSED:
            return
        if len(payload) > self._frame_max:
            raise too_large(kind, len(payload), self._frame_max)
        if self.state is State.CLOSING:
            perform_while_closing(self, kind, number, payload)
        elif kind == HEARTBEAT and not payload:
            if number:
                raise unexpected(f"type {kind}, all octets = <<>>")
        elif kind not in (METHOD, HEADER, BODY) or (kind == METHOD and len(payload) < 4):
            raise FrameError(501, f"type {kind}, all octets = {octets(payload)}: unknown_frame")
        elif number == 0:
            perform(self, kind, payload)
        elif self.state is not State.OPEN:
            raise unexpected(f"type {kind}, all octets = {octets(payload)}")
        else:
            self.channels.frame(kind, number, payload)

    # Channel 0

    def apply_tuning(self, tuning: Tuning) -> None:
        """Apply the negotiated limits."""
        self._frame_max = tuning.frame_max
        self.channels.limit = tuning.channel_max
        self.heartbeat_s = tuning.heartbeat_s

    def resume_reading(self) -> None:
        """Continue with the input that arrived during the authentication, in a turn and within its budget."""
        if self._incoming.size:
            self.is_held = True
            self.driver.go_on()

    # Ends

    def force_close(self, reason: str, code: int = 320) -> None:
        """Close the connection from this side (320: an operator, or the broker stops)."""
        if self.state is State.OPEN:
            self._close(code, reason_text := reply_text(code, reason), 0, 0)
            self.driver.log("connection closing", reason=reason_text)
        elif self.state is not State.CLOSED:
            self.end(reason)

    def fault(self) -> None:
        """End the connection after an internal error (541)."""
        if self.state in (State.OPENING, State.OPEN):
            self._close(541, reply_text(541, ""), 0, 0)
        elif self.state is not State.CLOSED:
            self.end("internal error")

    def lost(self) -> None:
        """Release everything the connection held: the transport is closed."""
        self.state = State.CLOSED
        self._release()
        self.channels.retire()
        self._incoming.take()

    def fail(self, error: GatewayError) -> None:
        """Close the connection after a violation, or a request whose refusal closes the connection."""
        if self.state is State.CLOSED:
            return
        code = reply_code(error)
        ids = (getattr(error, "class_id", 0), getattr(error, "method_id", 0))
        text = reply_text(code, str(error))
        self.driver.log("connection error", reason=text)
        if self.state in (State.OPEN, State.OPENING) or (code == 530 and self.state is State.TUNING):
            self._close(code, text, *ids)
        else:
            self.end(text)

    def refuse(self, refusal: Refused, number: int, class_id: int, method_id: int) -> None:
        """Answer a refused request: close its channel, or the connection for a hard error.

        The refusal of a content names the method of its publish.
        """
        code = reply_code(refusal)
        if code in HARD or number not in self.channels.open_by_number:
            self.fail(FrameError(code, str(refusal), class_id, method_id))
            return
        text = reply_text(code, str(refusal))
        self.driver.log("channel error", channel=number, reason=text)
        self.channels.refuse(number, code, text, class_id, method_id)

    def _close(self, code: int, text: str, class_id: int, method_id: int) -> None:
        self._release()
        self.state = State.CLOSING
        self.send_method(commands.Connection.Close(code, text, class_id, method_id))

    def end(self, reason: str) -> None:
        """Close the transport after the output that is already written."""
        self._release()
        self.state = State.CLOSED
        self.driver.log("connection closing", reason=reason)
        self.driver.hang_up()

    def _release(self) -> None:
        """Release everything the connection holds: deliveries, consumers, exclusive queues.

        Deliveries requeued by one channel must not be delivered on another one.
        """
        self.outbox.is_open = False
        self.channels.drop_all()
        if self.vhost is not None:
            self.vhost.release(self)

    # Turns, alarms and congestion

    def resume(self) -> None:
        """Resume the consumers that waited while the outbox was full."""
        self._resumption.serve(self.channels.waiting())

    def block(self, reason: str) -> None:
        """Tell an open client that its publishes are held back."""
        if self.state is State.OPEN:
            self.blocked_notice.give(reason)

    def unblock(self) -> None:
        """Tell an open client that its publishes are accepted again."""
        if self.state is State.OPEN:
            self.blocked_notice.withdraw()

    def fail_confirms(self) -> None:
        """Refuse every publish that waits for its confirm."""
        self.channels.fail_confirms()

    def send_method(self, method: Frame) -> None:
        """Send a method on channel 0."""
        self.outbox.write(encode_method(0, method))
