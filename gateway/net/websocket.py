"""A WebSocket before a protocol: the handshake, then messages that carry the protocol's bytes, cut anywhere.

wsproto knows WebSocket, as it does for Twisted's own resource, which is not used here (docs/adr/0009): that one chooses
no subprotocol, collects a message of any size before it passes it on, and leaves a peer that breaks the rules without a
close code. Here every part of a message goes on as it comes, so the size of frames needs no limit of its own.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

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
from wsproto.utilities import RemoteProtocolError

from gateway.kernel.ports import Clock
from gateway.logs import Log
from gateway.net.message_transport import MessageTransport

_log: Final = Log("websocket")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a protocol goes over WebSocket: the names it is asked for by, and whether it may come as text."""

    subprotocols: frozenset[str]
    has_to_be_named: bool
    takes_text: bool


#: MQTT-6.0.0-1 (binary only) and MQTT-6.0.0-3 (a client has to offer it); RabbitMQ turns others away likewise.
MQTT: Final = Dialect(frozenset({"mqtt", "mqttv3.1"}), has_to_be_named=True, takes_text=False)
STOMP: Final = Dialect(frozenset({"v12.stomp", "v11.stomp", "v10.stomp"}), has_to_be_named=False, takes_text=True)


class WebSocketProtocol(Protocol):
    """One connection: owns the handshake and the frames, and the protocol that speaks in messages after it."""

    def __init__(self, factory: "WebSocketFactory", address: IAddress | None) -> None:
        self._factory = factory
        self._address = address
        self._websocket = WSConnection(ConnectionType.SERVER)
        self._messages: MessageTransport | None = None
        self._client: Any = None  # any protocol of Twisted's
        self._is_over = False

    def connectionMade(self) -> None:
        """A peer connected."""
        self._deadline = self._factory.clock.call_later(self._factory.timeout_s, self._too_late)

    def dataReceived(self, data: bytes) -> None:
        """Bytes came: the handshake, or frames."""
        if self._is_over:
            return
        try:
            self._websocket.receive_data(data)
            for event in self._websocket.events():
                if (act := _ACTS.get(type(event))) is not None:
                    act(self, event)
                if self._is_over:
                    return
        except RemoteProtocolError as error:
            self._refuse(str(error), error.event_hint)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """The peer is gone."""
        self._is_over = True
        self._deadline.cancel()
        if self._client is not None:
            self._client.connectionLost(reason)

    # The handshake

    def _requested(self, request: Request) -> None:
        """Answer the request, and let the protocol begin if there is nothing against it (RFC 6455, 4.2)."""
        dialect = self._factory.dialect
        offered = next((name for name in request.subprotocols if name in dialect.subprotocols), None)
        if request.target.partition("?")[0] != self._factory.path:
            self._refuse(f"nothing at {request.target}", RejectConnection(status_code=404))
        elif offered is None and dialect.has_to_be_named:
            self._refuse(f"none of {request.subprotocols} is spoken here", RejectConnection(status_code=400))
        else:
            self._send(AcceptConnection(subprotocol=offered))
            self._deadline.cancel()
            self._messages = MessageTransport(self.transport, self._websocket.send)
            origins = (value for name, value in request.extra_headers if name.lower() == b"origin")
            self._messages.origin = next(origins, b"").decode("latin-1")
            self._client = self._factory.wrapped.buildProtocol(self._address)
            self._client.makeConnection(self._messages)

    def _too_late(self) -> None:
        transport: Any = self.transport
        self._log("no WebSocket handshake in time")
        transport.abortConnection()

    # Frames

    def _bytes_came(self, message: BytesMessage) -> None:
        self._pass_on(bytes(message.data), is_text=False)

    def _text_came(self, message: TextMessage) -> None:
        if self._factory.dialect.takes_text:
            self._pass_on(message.data.encode(), is_text=True)
        else:
            self._refuse("text instead of bytes", CloseConnection(CloseReason.UNSUPPORTED_DATA))

    def _pass_on(self, data: bytes, is_text: bool) -> None:
        assert self._messages is not None
        if data and not self._messages.disconnecting:
            self._messages.speaks_text = is_text
            self._client.dataReceived(data)

    def _ping_came(self, ping: Ping) -> None:
        assert self._messages is not None
        self._messages.pong(ping)

    def _close_came(self, close: CloseConnection) -> None:
        """The peer closes, or answers our close: either way the connection is done with (RFC 6455, 5.5.1)."""
        if self._websocket.state is not ConnectionState.CLOSED:
            self._send(close.response())
        self._leave()

    # Ends

    def _refuse(self, reason: str, answer: Event | None) -> None:
        """End the connection because the peer broke the rules; ``answer`` says so if there is a way to say it."""
        if answer is not None and self._websocket.state in (ConnectionState.CONNECTING, ConnectionState.OPEN):
            self._send(answer)
        self._log(reason)
        self._leave()

    def _leave(self) -> None:
        transport: Any = self.transport
        self._is_over = True
        if self._messages is not None:
            self._messages.end()
        else:
            transport.loseConnection()

    def _send(self, event: Event) -> None:
        transport: Any = self.transport
        transport.write(self._websocket.send(event))

    def _log(self, reason: str) -> None:
        transport: Any = self.transport
        peer = transport.getPeer()
        _log.info("websocket refused", peer=f"{peer.host}:{peer.port}", reason=reason)


#: What is done about each event; of pongs, which nobody asked for, nothing.
_ACTS: Final[Mapping[type[Event], Callable[[WebSocketProtocol, Any], None]]] = {
    Request: WebSocketProtocol._requested,
    BytesMessage: WebSocketProtocol._bytes_came,
    TextMessage: WebSocketProtocol._text_came,
    Ping: WebSocketProtocol._ping_came,
    CloseConnection: WebSocketProtocol._close_came,
}


class WebSocketFactory(Factory):
    """Puts a WebSocket before whatever the ``wrapped`` factory's protocols speak."""

    noisy = False

    def __init__(self, wrapped: Any, dialect: Dialect, path: str, clock: Clock, timeout_s: float) -> None:
        self.wrapped = wrapped  # Any: Twisted's factories share no type
        self.dialect = dialect
        self.path = path
        self.clock = clock
        self.timeout_s = timeout_s

    def buildProtocol(self, addr: IAddress | None) -> WebSocketProtocol:
        """Return what shakes hands on a new connection."""
        return WebSocketProtocol(self, addr)
