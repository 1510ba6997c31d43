"""A WebSocket as a transport: a protocol's writes are sent as messages, other calls go to the connection below."""

from collections.abc import Callable
from typing import Any, Final

from twisted.internet.interfaces import IPushProducer
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage
from wsproto.utilities import LocalProtocolError
from zope.interface import implementer  # type: ignore[import-untyped]

from gateway.net.introduced import introduced_of

#: Attributes that a protocol over WebSocket may use of the connection below, unchanged.
_PASSED_ON: Final = (
    "getPeer",
    "getHost",
    "setTcpNoDelay",
    "abortConnection",
    "getPeerCertificate",
    "getHandle",
    "promote",
)


def is_web(transport: Any) -> bool:  # Any: Twisted's interfaces are not types
    """Whether a client uses WebSocket, up to this node or up to the one that forwards it."""
    introduced = introduced_of(transport)
    return isinstance(transport, MessageTransport) if introduced is None else introduced.is_web


def page_of(transport: Any) -> str:
    """Return the web page that a client comes from; empty if it is none."""
    if (introduced := introduced_of(transport)) is not None:
        return introduced.origin
    return transport.origin if isinstance(transport, MessageTransport) else ""


class MessageTransport:
    """The transport of a protocol whose bytes are carried in messages; ``encode`` turns an event into bytes.

    ``origin`` is the web page that opened the WebSocket, as the browser reports it; empty for clients that are not
    browsers. ``getPeerCertificate`` and ``getHandle`` exist if the connection has them, as with TLS. Each write becomes
    one message: text if the peer sends text and the data is valid UTF-8, otherwise binary.
    """

    def __init__(self, connection: Any, encode: Callable[[Event], bytes]) -> None:  # Any: TCP and TLS share no type
        self.disconnecting = False
        self.speaks_text = False
        self.origin = ""
        self._connection = connection
        self._encode = encode
        self._is_full = False
        self._is_held = False
        self._is_paused = False
        self._has_producer = False
        self._unanswered: Ping | None = None
        for name in _PASSED_ON:
            if hasattr(connection, name):
                setattr(self, name, getattr(connection, name))

    @property
    def transport(self) -> Any:
        """The connection below."""
        return self._connection

    def write(self, data: bytes) -> None:
        """Send a message; after the close, do nothing."""
        if not self.disconnecting:
            self._send(self._message(data))

    def pong(self, ping: Ping) -> None:
        """Answer a ping; while the peer does not read, only the last one (RFC 6455, 5.5.3)."""
        if self._is_full:
            self._unanswered = ping
        elif not self.disconnecting:
            self._send(ping.response())

    def loseConnection(self, code: int = 1000, reason: str = "") -> None:
        """Start the closing handshake. The connection ends with the peer's answer, or after a time limit."""
        if not self.disconnecting:
            self.disconnecting = True
            self._send(CloseConnection(code, reason))

    def end(self) -> None:
        """Close the connection below after all output was sent. The producer is unregistered, since the close would
        wait for it.
        """
        self.disconnecting = True
        self.unregisterProducer()
        self._connection.loseConnection()

    def pauseProducing(self) -> None:
        """Stop reading."""
        self._is_paused = True
        self._connection.pauseProducing()

    def resumeProducing(self) -> None:
        """Resume reading, unless received input is still unserved."""
        self._is_paused = False
        if not self._is_held:
            self._connection.resumeProducing()

    def hold(self, is_held: bool) -> None:
        """Stop reading until the received input is served, regardless of ``resumeProducing``."""
        if is_held is self._is_held or self.disconnecting:
            return
        self._is_held = is_held
        if is_held:
            self._connection.pauseProducing()
        elif not self._is_paused:
            self._connection.resumeProducing()

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Register the producer that is paused while the connection's buffer is full."""
        self._has_producer = True
        self._connection.registerProducer(_Gauge(producer, self._filled), streaming)

    def unregisterProducer(self) -> None:
        """Unregister the producer; harmless when there is none."""
        if self._has_producer:
            self._has_producer = False
            self._connection.unregisterProducer()

    def _filled(self, is_full: bool) -> None:
        self._is_full = is_full
        if not is_full and self._unanswered is not None:
            ping, self._unanswered = self._unanswered, None
            self.pong(ping)

    def _message(self, data: bytes) -> Event:
        if self.speaks_text:
            try:
                return TextMessage(data.decode())
            except UnicodeDecodeError:
                pass  # RFC 6455, 5.6: text is UTF-8; other data is sent as binary
        return BytesMessage(data)

    def _send(self, event: Event) -> None:
        """Send an event, unless the peer closed the WebSocket meanwhile: nothing may follow a close."""
        try:
            data = self._encode(event)
        except LocalProtocolError:
            return
        self._connection.write(data)


@implementer(IPushProducer)
class _Gauge:
    """Producer that reports the buffer's fill level to the protocol's producer and to the transport."""

    def __init__(self, producer: Any, filled: Callable[[bool], None]) -> None:
        self._producer = producer
        self._filled = filled

    def pauseProducing(self) -> None:
        """Report a full buffer."""
        self._filled(True)
        self._producer.pauseProducing()

    def resumeProducing(self) -> None:
        """Report that the buffer has room again."""
        self._filled(False)
        self._producer.resumeProducing()

    def stopProducing(self) -> None:
        """Stop the producer: the connection is closed."""
        self._producer.stopProducing()
