"""The server side of one AMQP 0-9-1 connection as a machine: bytes in, kernel calls, frames out; no sockets, no clock.

The order of a conversation is a row of states; the methods on channel 0 are a table of (state, method). Everything on
other channels goes to the channel. Errors end the channel or the connection as 1.8 of the specification says.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, Final, Protocol, TypeAlias

from pamqp import commands
from pamqp.base import Frame

from gateway.access import CertificateSubject, Credentials, Permissions, Principal
from gateway.kernel.errors import AccessRefused, GatewayError, NotAllowed, Refused
from gateway.kernel.message import Value
from gateway.kernel.ports import Origin
from gateway.kernel.vhost import VirtualHost
from gateway_amqp.channel import ACK, PUBLISH, Channel
from gateway_amqp.content import BODY, FRAME_END, FRAME_HEAD, HEADER, HEARTBEAT, METHOD, whole_content
from gateway_amqp.errors import HARD, FrameError, channel_error, reply_code, reply_text
from gateway_amqp.handshake import ACCEPTED_HEADERS, FRAME_MIN, PROTOCOL_HEADER, Tuning, capabilities, start
from gateway_amqp.login import credentials
from gateway_amqp.methods import bytes_of, decode_method, encode_method
from gateway_amqp.outbox import Outbox
from gateway_amqp.scope import Scope
from gateway_amqp.settings import AmqpSettings

_frame_head = FRAME_HEAD.unpack_from
_CLOSE: Final = b"\x00\x0a\x00\x32"
_CLOSE_OK: Final = b"\x00\x0a\x00\x33"
_CHANNEL_OPEN: Final = b"\x00\x14\x00\x0a"
_CHANNEL_CLOSE: Final = b"\x00\x14\x00\x28"
_CHANNEL_CLOSE_OK: Final = b"\x00\x14\x00\x29"
HEARTBEAT_FRAME: Final = b"\x08\x00\x00\x00\x00\x00\x00\xce"


class State(Enum):
    """How far the conversation got."""

    GREETING = auto()  # the protocol header has to come
    STARTING = auto()  # start-ok has to come
    AUTHENTICATING = auto()  # somebody is being asked who this is
    TUNING = auto()  # tune-ok has to come
    OPENING = auto()  # connection.open has to come
    OPEN = auto()
    CLOSING = auto()  # close was sent, close-ok has to come
    CLOSED = auto()  # nothing will be said or heard any more


class Driver(Protocol):
    """What the machine needs of whoever moves its bytes."""

    peer_host: str
    name: str

    @property
    def certificate(self) -> CertificateSubject | None:
        """The names in the client's verified certificate."""
        ...

    def log(self, event: str, **details: object) -> None:
        """Write a line about this connection."""
        ...

    def hang_up(self) -> None:
        """Send what is left, then close the transport."""
        ...

    def opened(self) -> None:
        """The connection is in its virtual host."""
        ...

    def publishing(self) -> None:
        """The client publishes for the first time, or to somewhere new."""
        ...


class Connection:
    """One client's conversation. Owns its channels and its outbox."""

    def __init__(self, settings: AmqpSettings, driver: Driver, wake: Callable[[], None]) -> None:
        self.settings = settings
        self.outbox = Outbox(wake)
        self.state = State.GREETING
        self.vhost: VirtualHost | None = None
        self.client_properties: Mapping[str, Value] = {}
        self.heartbeat_s = 0
        self.is_blocked = False
        self.has_published = False
        self._driver = driver
        self._partial: list[bytes] = []
        self._partial_size = 0
        self._wanted = 8
        self._frame_max = FRAME_MIN
        self._channel_max = settings.channel_max
        self._channels: dict[int, Channel] = {}
        self._closing_channels: set[int] = set()
        self._turning: list[Channel] = []
        self._capabilities: frozenset[str] = frozenset()
        self._credentials: Credentials | None = None
        self._principal: Principal | None = None
        self._permissions: Permissions | None = None
        self._permissions_version = 0

    # What channels and listings ask

    @property
    def principal(self) -> Principal:
        """Who is connected."""
        assert self._principal is not None
        return self._principal

    @property
    def permissions(self) -> Permissions:
        """What the user may do now; asked for again when permissions changed. :raises AccessRefused: none any more."""
        assert self.vhost is not None
        if self._permissions is None or self._permissions_version != self.vhost.version:
            try:
                self._permissions = self.settings.access_of(self.vhost.name).enter(self.principal, self.vhost.name)
            except NotAllowed as refusal:
                raise AccessRefused(str(refusal)) from None
            self._permissions_version = self.vhost.version
        return self._permissions

    @property
    def user_name(self) -> str:
        """Who is connected, empty before that is known."""
        return "" if self._principal is None else self._principal.name

    def publishing(self) -> None:
        """Hear from a channel that it publishes to somewhere new."""
        if not self.has_published:
            self.has_published = True
            self._driver.publishing()

    @property
    def channel_count(self) -> int:
        """How many channels are open."""
        return len(self._channels)

    def has_capability(self, name: str) -> bool:
        """Whether the client announced a capability."""
        return name in self._capabilities

    # Bytes in

    def receive(self, data: bytes) -> None:
        """Feed bytes from the peer; everything they complete is done before this returns."""
        if self.state is State.CLOSED:
            return
        if self._partial_size:
            self._partial.append(data)
            self._partial_size += len(data)
            if self._partial_size < self._wanted:
                return
            data = b"".join(self._partial)
            self._partial, self._partial_size = [], 0
        position = 0
        if self.state is State.GREETING:
            if len(data) < 8:
                self._keep(data, 0, 8)
                return
            self._greet(data[:8])
            position = 8
        if self.state is State.AUTHENTICATING:
            self._keep(data, position, 1)
            return
        try:
            self._read_frames(data, position)
        except GatewayError as error:
            self._fail(error)

    def _read_frames(self, data: bytes, position: int) -> None:
        """Take frame after frame; the three that make up nearly all traffic first.

        A refusal ends the channel and reading goes on behind the frame that caused it.
        """
        end = len(data)
        channels = self._channels
        while end - position >= 8:
            kind, number, size = _frame_head(data, position)
            stop = position + 7 + size
            if stop >= end or data[stop] != FRAME_END:
                if size > self._frame_max - 8:
                    raise FrameError(
                        501, f"type {kind}, all octets = <<>>: {{frame_too_large,{size},{self._frame_max - 8}}}"
                    )
                if stop >= end:
                    self._keep(data, position, size + 8)
                    return
                raise FrameError(501, f"type {kind}: {{invalid_frame_end_marker,{data[stop]}}}")
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
                            continue
                    elif index == ACK:
                        channel.ack(payload)
                        continue
                self._frame(kind, number, payload)
            except Refused as refusal:
                self._refuse(refusal, number, payload if kind == METHOD else PUBLISH)
            if self.state is State.AUTHENTICATING:
                self._keep(data, position, 1)
                return
        if position < end:
            self._keep(data, position, 8)

    def _keep(self, data: bytes, position: int, wanted: int) -> None:
        """Keep what is not complete until ``wanted`` bytes of it are there."""
        rest = data[position:]
        self._partial = [rest] if rest else []
        self._partial_size = len(rest)
        self._wanted = wanted

    def _greet(self, header: bytes) -> None:
        if header not in ACCEPTED_HEADERS:
            self.outbox.write(PROTOCOL_HEADER)  # 2.2.4: another version is answered with ours
            self._end(f"bad protocol header {header!r}")
            return
        self.state = State.STARTING
        self._say(start(self.settings.server_properties, self.settings.mechanisms))

    # Frames

    def _frame(self, kind: int, number: int, payload: bytes) -> None:
        if self.state is State.CLOSED:
            return
        if self.state is State.CLOSING:
            self._wind_up(kind, number, payload)
        elif number in self._closing_channels:
            self._wind_up_channel(kind, number, payload)
        elif kind == HEARTBEAT:
            if number or payload:
                raise FrameError(
                    505 if number else 501, f"type 8, all octets = <<{len(payload)} bytes>>: unknown_frame"
                )
        elif kind not in (METHOD, HEADER, BODY):
            raise FrameError(501, f"type {kind}, all octets = <<{len(payload)} bytes>>: unknown_frame")
        elif number == 0:
            self._frame_of_connection(kind, payload)
        elif self.state is not State.OPEN:
            raise FrameError(505, f"frame on channel {number} while {self.state.name.lower()}")
        else:
            self._frame_of_channel(kind, number, payload)

    def _frame_of_connection(self, kind: int, payload: bytes) -> None:
        if kind != METHOD:
            raise FrameError(505, f"type {kind} frame on channel 0")
        method = decode_method(payload)
        perform = _ON_CHANNEL_0.get((self.state, type(method)))
        if perform is None:
            state = "running" if self.state is State.OPEN else self.state.name.lower()
            raise channel_error(f"unexpected method in connection state {state}", *_ids(payload))
        perform(self, method)

    def _frame_of_channel(self, kind: int, number: int, payload: bytes) -> None:
        channel = self._channels.get(number)
        if channel is None:
            self._frame_of_absent_channel(kind, number, payload)
        elif kind != METHOD:
            channel.content(kind, payload)
        elif payload[:4] == _CHANNEL_CLOSE and channel.assembly is None:
            decode_method(payload)
            self._drop_channel(number)
            self.outbox.write(encode_method(number, commands.Channel.CloseOk()))
        else:
            channel.method(payload)

    def _frame_of_absent_channel(self, kind: int, number: int, payload: bytes) -> None:
        if kind != METHOD:
            raise FrameError(505, "expected method frame, got non method frame instead")
        if payload[:4] != _CHANNEL_OPEN:
            raise channel_error("expected 'channel.open'", *_ids(payload))
        decode_method(payload)
        if len(self._channels) >= self._channel_max:
            opened = len(self._channels)
            raise NotAllowed(
                f"number of channels opened ({opened}) has reached the negotiated channel_max ({self._channel_max})"
            )
        assert self.vhost is not None
        origin = Origin(self._driver.name, number, self.principal.name, "amqp091")
        broker, settings = self.settings.broker, self.settings
        scope = Scope(
            number, self, self.vhost, self.outbox, broker.journal, origin, settings.token, settings.max_message_size
        )
        self._channels[number] = Channel(scope, self._frame_max, self._turning.append)
        self.outbox.write(encode_method(number, commands.Channel.OpenOk()))

    # Handshake

    def _start_ok(self, method: commands.Connection.StartOk) -> None:
        self.client_properties = method.client_properties  # type: ignore[assignment]  # a table of ours
        self._capabilities = capabilities(self.client_properties)
        claimed = credentials(
            method.mechanism,
            bytes_of(method.response),
            self._driver.peer_host,
            self._driver.certificate,
            self.settings.mechanisms,
        )
        self.state = State.AUTHENTICATING
        self._credentials = claimed
        self.settings.login.authenticate(claimed, self._authenticated)

    def _authenticated(self, principal: Principal | None) -> None:
        """Hear who it is, at once or later; go on with what came in meanwhile."""
        if self.state is not State.AUTHENTICATING:
            return
        if principal is None:
            assert self._credentials is not None
            self._refuse_login(self._credentials.mechanism)
            return
        self._principal = principal
        self._driver.log("connection authenticated", user=principal.name)
        self.state = State.TUNING
        settings = self.settings
        self._say(commands.Connection.Tune(settings.channel_max, settings.frame_max, settings.heartbeat_s))
        if self._partial_size:
            rest, self._partial, self._partial_size = b"".join(self._partial), [], 0
            self.receive(rest)

    def _refuse_login(self, mechanism: str) -> None:
        """Tell a client that can hear it why (RabbitMQ: authentication_failure_close); hang up on any other."""
        if "authentication_failure_close" in self._capabilities:
            text = f"Login was refused using authentication mechanism {mechanism}. For details see the broker logfile."
            self._say(commands.Connection.Close(403, reply_text(403, text), 0, 0))
        self._end("authentication refused")

    def _tune_ok(self, method: commands.Connection.TuneOk) -> None:
        tuning = Tuning(method, self.settings.frame_max, self.settings.channel_max)
        self._frame_max = tuning.frame_max
        self._channel_max = tuning.channel_max
        self.heartbeat_s = tuning.heartbeat_s
        self.state = State.OPENING

    def _open(self, method: commands.Connection.Open) -> None:
        name = method.virtual_host
        vhost = self.settings.broker.vhost(name)
        self._permissions = self.settings.access_of(name).enter(self.principal, name)
        self._permissions_version = vhost.version
        self.vhost = vhost
        self._credentials = None
        self.state = State.OPEN
        self._say(commands.Connection.OpenOk())
        self._driver.opened()

    def _update_secret(self, method: commands.Connection.UpdateSecret) -> None:
        self._say(commands.Connection.UpdateSecretOk())

    # Ends

    def _close_asked(self, method: commands.Connection.Close) -> None:
        self._say(commands.Connection.CloseOk())
        self._end(f"closed by the client: {method.reply_code} {method.reply_text}".rstrip())

    def force_close(self, reason: str, code: int = 320) -> None:
        """Close the connection from this side (320: an operator, or the broker stops)."""
        if self.state is State.OPEN:
            self._close(code, reason_text := reply_text(code, reason), 0, 0)
            self._driver.log("connection closing", reason=reason_text)
        elif self.state is not State.CLOSED:
            self._end(reason)

    def lost(self) -> None:
        """The transport is gone: release everything the connection held."""
        self.state = State.CLOSED
        self._release()

    def _fail(self, error: GatewayError) -> None:
        """End the connection because the peer broke the rules, or asked for what no channel survives."""
        code = reply_code(error)
        ids = (getattr(error, "class_id", 0), getattr(error, "method_id", 0))
        text = reply_text(code, str(error))
        self._driver.log("connection error", reason=text)
        if self.state in (State.OPEN, State.OPENING) or (code == 530 and self.state is State.TUNING):
            self._close(code, text, *ids)
        else:
            self._end(text)

    def _refuse(self, refusal: Refused, number: int, payload: bytes) -> None:
        """Answer a request that was understood and declined: end its channel, or the connection for a hard error.

        ``payload`` is the method's; a content is refused in the name of its publish.
        """
        code = reply_code(refusal)
        channel = self._channels.get(number)
        if code in HARD or channel is None:
            raise FrameError(code, str(refusal), *_ids(payload)) from refusal
        self._drop_channel(number)
        self._closing_channels.add(number)
        text = reply_text(code, str(refusal))
        self._driver.log("channel error", channel=number, reason=text)
        self.outbox.write(encode_method(number, commands.Channel.Close(code, text, *_ids(payload))))

    def _close(self, code: int, text: str, class_id: int, method_id: int) -> None:
        self._release()
        self.state = State.CLOSING
        self._say(commands.Connection.Close(code, text, class_id, method_id))

    def _wind_up(self, kind: int, number: int, payload: bytes) -> None:
        """After close was sent only its answer, or the peer's own close, means anything (1.4.2.7)."""
        if number == 0 and kind == METHOD and payload[:4] in (_CLOSE, _CLOSE_OK):
            if payload[:4] == _CLOSE:
                self._say(commands.Connection.CloseOk())
            self._end("closed by the broker")

    def _wind_up_channel(self, kind: int, number: int, payload: bytes) -> None:
        """After channel.close was sent only its answer, or the peer's own close, means anything."""
        if kind != METHOD:
            return
        if payload[:4] == _CHANNEL_CLOSE_OK:
            self._closing_channels.discard(number)
        elif payload[:4] == _CHANNEL_CLOSE:
            self._closing_channels.discard(number)
            self.outbox.write(encode_method(number, commands.Channel.CloseOk()))
        elif payload[:4] == _CHANNEL_OPEN:
            raise channel_error("second 'channel.open' seen", 20, 10)

    def _end(self, reason: str) -> None:
        """Say nothing more than what is written already."""
        self._release()
        self.state = State.CLOSED
        self._driver.log("connection closing", reason=reason)
        self._driver.hang_up()

    def _release(self) -> None:
        """Give back everything the connection holds: deliveries, consumers, exclusive queues."""
        for number in list(self._channels):
            self._drop_channel(number)
        if self.vhost is not None:
            self.vhost.release(self)

    def _drop_channel(self, number: int) -> None:
        self._channels.pop(number).close()

    # Turns, alarms and congestion

    def end_turn(self) -> None:
        """Let confirms that are due into the outbox."""
        if self._turning:
            turning = self._turning.copy()
            self._turning.clear()
            for channel in turning:
                channel.end_turn()

    def resume(self) -> None:
        """Serve the consumers that waited because the way to the peer was full."""
        for channel in tuple(self._channels.values()):
            channel.consuming.resume()

    def block(self, reason: str) -> None:
        """Tell a client that can hear it that its publishes have to wait."""
        if not self.is_blocked and self.state is State.OPEN:
            self.is_blocked = True
            if self.has_capability("connection.blocked"):
                self._say(commands.Connection.Blocked(reason))

    def unblock(self) -> None:
        """Tell it that they need not wait any more."""
        if self.is_blocked:
            self.is_blocked = False
            if self.has_capability("connection.blocked") and self.state is State.OPEN:
                self._say(commands.Connection.Unblocked())

    def fail_confirms(self) -> None:
        """Refuse every publish that waits for its confirm."""
        for channel in self._channels.values():
            channel.fail_confirms()

    def beat(self) -> None:
        """Send a heartbeat."""
        self.outbox.write(HEARTBEAT_FRAME)

    def _say(self, method: Frame) -> None:
        self.outbox.write(encode_method(0, method))


Perform: TypeAlias = Callable[[Connection, Any], None]  # each row takes its own method class

#: What a connection does on channel 0, by state. A pair that is absent is an error.
_ON_CHANNEL_0: Final[Mapping[tuple[State, type[Frame]], Perform]] = {
    (State.STARTING, commands.Connection.StartOk): Connection._start_ok,
    (State.TUNING, commands.Connection.TuneOk): Connection._tune_ok,
    (State.OPENING, commands.Connection.Open): Connection._open,
    (State.OPEN, commands.Connection.UpdateSecret): Connection._update_secret,
    (State.STARTING, commands.Connection.Close): Connection._close_asked,
    (State.TUNING, commands.Connection.Close): Connection._close_asked,
    (State.OPENING, commands.Connection.Close): Connection._close_asked,
    (State.OPEN, commands.Connection.Close): Connection._close_asked,
}


def _ids(payload: bytes) -> tuple[int, int]:
    """Return class and method of a method frame."""
    return int.from_bytes(payload[:2], "big"), int.from_bytes(payload[2:4], "big")
