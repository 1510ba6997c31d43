"""WebSocket in front of a protocol: the handshake, then messages that carry the protocol's bytes, cut anywhere.

wsproto implements WebSocket. Twisted's own resource is not used (docs/adr/0009): it chooses no subprotocol, collects
whole messages of any size, and closes without a close code when the peer breaks the rules. Here each part of a message
is passed on at once, so that frames need no size limit. Pages of foreign origins are refused.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import h11
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure
from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    Request,
    TextMessage,
)
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from gateway.access.principals import is_loopback
from gateway.kernel.clock import Clock
from gateway.logs import StructuredLog
from gateway.logs.rate_limit import RateLimit
from gateway.net.listeners import plain_host
from gateway.net.message_transport import MessageTransport
from gateway.net.origins import OriginRules

_log: Final = StructuredLog("websocket")


@dataclass(frozen=True, slots=True)
class Dialect:
    """The WebSocket form of a protocol: its subprotocol names, and whether text messages are allowed."""

    subprotocols: frozenset[str]
    has_to_be_named: bool
    takes_text: bool


#: MQTT-6.0.0-1 (binary only) and MQTT-6.0.0-3 (a client has to offer it); RabbitMQ refuses other clients likewise.
MQTT: Final = Dialect(frozenset({"mqtt", "mqttv3.1"}), has_to_be_named=True, takes_text=False)
STOMP: Final = Dialect(frozenset({"v12.stomp", "v11.stomp", "v10.stomp"}), has_to_be_named=False, takes_text=True)


#: Errors that wsproto raises besides its own: for headers that are not ASCII, for names that are not valid IDNA, and
#: for frames after the last one.
_FAULTS: Final = (LocalProtocolError, RemoteProtocolError, h11.ProtocolError, ValueError, TypeError, AssertionError)

#: The end of a request's head.
_END_OF_HEAD: Final = re.compile(rb"\r?\n\r?\n")

#: Events served in one turn, so that a flood of small frames does not delay others (64 KiB hold 11,000 pings).
MOST_EVENTS: Final = 100

#: Connections of one listener that may be in their handshake.
MOST_HANDSHAKES: Final = 500

#: Time limit for the peer to close its side, in seconds.
_LEAVING_S: Final = 10.0

#: Seconds between two log lines about refused peers.
_LOG_INTERVAL_S: Final = 10.0


class WebSocketProtocol(Protocol):
    """One connection: owns the handshake and the frames, and the protocol behind them."""

    def __init__(self, factory: "WebSocketFactory", address: IAddress | None) -> None:
        self._factory = factory
        self._address = address
        self._websocket = WSConnection(ConnectionType.SERVER)
        self._events: Iterator[Event] = iter(())
        self._messages: MessageTransport | None = None
        self._client: Any = None  # any Twisted protocol
        self._is_working = False
        self._is_scheduled = False
        self._is_over = False
        self._head_end = b""
        self._early = b""

    def connectionMade(self) -> None:
        """Start the time limit of the handshake."""
        self._deadline = self._factory.clock.call_later(self._factory.timeout_s, self._timed_out)
        self._factory.began(self)

    def dataReceived(self, data: bytes) -> None:
        """Handle bytes: the handshake, or frames."""
        if self._is_over:
            return
        try:
            if self._websocket.connection is None:
                data = self._until_frames(data)
            self._websocket.receive_data(data)
        except _FAULTS as error:
            self._protocol_error(error)
            return
        if not self._is_scheduled:
            self._work()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Release the connection, and notify the protocol."""
        self._is_over = True
        self._factory.ended(self)
        self._events = iter(())
        self._deadline.cancel()
        client, self._client = self._client, None
        if client is not None:
            client.connectionLost(reason)

    # Events

    def _work(self) -> None:
        """Serve the received events, some of them in this turn."""
        self._is_scheduled = False
        if self._is_working:
            return
        self._is_working = True
        try:
            is_done = self._serve()
        finally:
            self._is_working = False
        if self._messages is not None:
            self._messages.hold(not is_done)
        if not is_done:
            self._work_soon()

    def _serve(self) -> bool:
        """Serve some events; return whether none are left."""
        for _ in range(MOST_EVENTS):
            if self._is_over:
                return True
            event = self._next_event()
            if event is None:
                return True
            if (act := _ACTS.get(type(event))) is not None:
                act(self, event)
        return False

    def _next_event(self) -> Event | None:
        try:
            event = next(self._events, None)
            if event is None:
                self._events = self._websocket.events()
                event = next(self._events, None)
        except _FAULTS as error:
            self._protocol_error(error)
            return None
        return event

    def _work_soon(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._factory.clock.call_later(0, self._work)

    # The handshake

    def _requested(self, request: Request) -> None:
        """Answer the request, and start the protocol if the request is valid (RFC 6455, 4.2)."""
        dialect, transport = self._factory.dialect, self.transport
        origin = next((value for name, value in request.extra_headers if name.lower() == b"origin"), None)
        offered = next((name for name in request.subprotocols if name in dialect.subprotocols), None)
        if request.target.partition("?")[0] != self._factory.path:
            self._refuse("no such path", RejectConnection(status_code=404))
        elif (refusal := self._foreign(request.host, origin)) is not None:
            self._refuse(refusal, RejectConnection(status_code=403))
        elif offered is None and dialect.has_to_be_named:
            self._refuse("none of the offered subprotocols is supported", RejectConnection(status_code=400))
        else:
            self._send(AcceptConnection(subprotocol=offered))
            self._factory.ended(self)
            self._deadline.cancel()
            self._messages = MessageTransport(transport, self._websocket.send)
            self._messages.origin = (origin or b"").decode("latin-1")
            self._client = self._factory.wrapped.buildProtocol(self._address)
            self._client.makeConnection(self._messages)
            if self._early:
                self._websocket.receive_data(self._early)
                self._early = b""

    def _until_frames(self, data: bytes) -> bytes:
        """Return the handshake's part of the data; keep frames behind it, which wsproto would drop."""
        if self._early:
            self._early += data
            return b""
        seen = self._head_end + data
        end = _END_OF_HEAD.search(seen)
        if end is None:
            self._head_end = seen[-3:]
            return data
        at = end.end() - len(self._head_end)
        self._early = data[at:]
        return data[:at]

    def _foreign(self, host: str, origin: bytes | None) -> str | None:
        """Return the reason to refuse the page of the request, ``None`` to allow it (RFC 6455, 10.2)."""
        transport: Any = self.transport
        is_local = is_loopback(plain_host(getattr(transport.getHost(), "host", "")))
        page = None if origin is None else origin.decode("latin-1")
        return self._factory.origins.refusal(host, page, is_local=is_local)

    def _timed_out(self) -> None:
        self.give_up("no WebSocket handshake in time")

    def give_up(self, reason: str) -> None:
        """Abort a connection without a handshake."""
        transport: Any = self.transport
        self._is_over = True
        self._deadline.cancel()
        self._factory.ended(self)
        self._log(reason)
        transport.abortConnection()

    # Frames

    def _bytes_came(self, message: BytesMessage) -> None:
        self._pass_on(bytes(message.data), is_text=False)

    def _text_came(self, message: TextMessage) -> None:
        if self._factory.dialect.takes_text:
            self._pass_on(message.data.encode(), is_text=True)
        else:
            self._refuse(
                "text message, but only binary ones are supported", CloseConnection(CloseReason.UNSUPPORTED_DATA)
            )

    def _pass_on(self, data: bytes, is_text: bool) -> None:
        assert self._messages is not None
        if data and not self._messages.disconnecting:
            self._messages.speaks_text = is_text
            self._client.dataReceived(data)

    def _ping_came(self, ping: Ping) -> None:
        assert self._messages is not None
        self._messages.pong(ping)

    def _close_came(self, close: CloseConnection) -> None:
        """Close after the peer's close, or after its answer to ours (RFC 6455, 5.5.1)."""
        if self._websocket.state is not ConnectionState.CLOSED:
            self._send(CloseConnection(_answerable(close.code)))
        self._leave()

    # Ends

    def _protocol_error(self, error: Exception) -> None:
        """End the connection because of bytes that are not valid WebSocket."""
        hint = error.event_hint if isinstance(error, RemoteProtocolError) else None
        if hint is None and self._websocket.state is ConnectionState.CONNECTING:
            hint = RejectConnection(status_code=400)
        elif hint is None:
            hint = CloseConnection(CloseReason.PROTOCOL_ERROR)
        self._refuse(str(error) if isinstance(error, RemoteProtocolError) else "no WebSocket", hint)

    def _refuse(self, reason: str, answer: Event | None) -> None:
        """End the connection because the peer broke the rules; ``answer`` reports it if there is a way to."""
        if answer is not None and self._websocket.state in (ConnectionState.CONNECTING, ConnectionState.OPEN):
            self._send(answer)
        self._log(reason)
        self._leave()

    def _leave(self) -> None:
        transport: Any = self.transport
        self._is_over = True
        self._factory.ended(self)
        self._deadline.cancel()
        self._deadline = self._factory.clock.call_later(_LEAVING_S, transport.abortConnection)
        if self._messages is not None:
            self._messages.end()
        else:
            transport.loseConnection()

    def _send(self, event: Event) -> None:
        """Send an event, unless the connection is past it: its peer may close it at any time."""
        transport: Any = self.transport
        try:
            data = self._websocket.send(event)
        except _FAULTS:
            return
        transport.write(data)

    def _log(self, reason: str) -> None:
        transport: Any = self.transport
        peer = transport.getPeer()
        left_out = self._factory.refusals.passes(reason)
        if left_out is not None:
            more = {"left_out": left_out} if left_out else {}
            _log.info("websocket refused", peer=f"{peer.host}:{peer.port}", reason=reason, **more)


def _answerable(code: int) -> int:
    """Return the close code for the answer to a peer's code, which may be one that is never sent (RFC 6455, 7.4.1)."""
    return code if code != CloseReason.NO_STATUS_RCVD else CloseReason.NORMAL_CLOSURE


#: Handlers of each event; pongs are ignored, since no pings are sent.
_ACTS: Final[Mapping[type[Event], Callable[[WebSocketProtocol, Any], None]]] = {
    Request: WebSocketProtocol._requested,
    BytesMessage: WebSocketProtocol._bytes_came,
    TextMessage: WebSocketProtocol._text_came,
    Ping: WebSocketProtocol._ping_came,
    CloseConnection: WebSocketProtocol._close_came,
}


#: Pages of this host at any port.
_OWN_PAGES: Final = OriginRules(any_port=True)


class WebSocketFactory(Factory):
    """Puts WebSocket in front of the ``wrapped`` factory's protocol. Pages have to satisfy ``origins``."""

    noisy = False

    def __init__(
        self,
        wrapped: Any,
        dialect: Dialect,
        path: str,
        clock: Clock,
        timeout_s: float,
        origins: OriginRules = _OWN_PAGES,
    ) -> None:
        self.wrapped = wrapped  # Any: Twisted's factories share no type
        self.dialect = dialect
        self.path = path
        self.clock = clock
        self.timeout_s = timeout_s
        self.origins = origins
        self.refusals = RateLimit(1, _LOG_INTERVAL_S, clock.monotonic_s)
        self._handshakes: dict[WebSocketProtocol, None] = {}

    def buildProtocol(self, addr: IAddress | None) -> WebSocketProtocol:
        """Return the protocol that performs the handshake of a new connection."""
        return WebSocketProtocol(self, addr)

    def began(self, connection: WebSocketProtocol) -> None:
        """Register a connection in its handshake; if there are too many, close the oldest."""
        self._handshakes[connection] = None
        if len(self._handshakes) > MOST_HANDSHAKES:
            next(iter(self._handshakes)).give_up("too many connections in their handshake")

    def ended(self, connection: WebSocketProtocol) -> None:
        """Unregister a handshake, completed or not."""
        self._handshakes.pop(connection, None)
