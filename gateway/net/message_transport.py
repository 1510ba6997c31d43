"""A WebSocket as a transport: what a protocol writes leaves as messages, the rest is asked of the connection below."""

from collections.abc import Callable
from typing import Any, Final

from twisted.internet.interfaces import IPushProducer
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage
from wsproto.utilities import LocalProtocolError
from zope.interface import implementer  # type: ignore[import-untyped]

#: What a protocol over WebSocket may ask of the connection below it as it is.
_PASSED_ON: Final = ("getPeer", "getHost", "setTcpNoDelay", "abortConnection", "getPeerCertificate", "let_in")


class MessageTransport:
    """Stands between a protocol and the connection that carries its messages; ``encode`` turns an event into bytes.

    ``origin`` is the web page that opened the WebSocket, as its browser says; empty for clients that are no browsers.
    It has ``getPeerCertificate`` if the connection has. Each write becomes one message: of text if the peer speaks
    text and what is written is text, else of bytes.
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
        """Send a message. Nothing leaves after the close."""
        if not self.disconnecting:
            self._send(self._message(data))

    def pong(self, ping: Ping) -> None:
        """Answer a ping; while the peer does not read, only the last one (RFC 6455, 5.5.3)."""
        if self._is_full:
            self._unanswered = ping
        elif not self.disconnecting:
            self._send(ping.response())

    def loseConnection(self, code: int = 1000, reason: str = "") -> None:
        """Say that nothing more comes. The connection ends with the peer's answer, or when somebody loses patience."""
        if not self.disconnecting:
            self.disconnecting = True
            self._send(CloseConnection(code, reason))

    def end(self) -> None:
        """Close the connection below once everything is sent; a producer would be waited for."""
        self.disconnecting = True
        self.unregisterProducer()
        self._connection.loseConnection()

    def pauseProducing(self) -> None:
        """Read no more."""
        self._is_paused = True
        self._connection.pauseProducing()

    def resumeProducing(self) -> None:
        """Read on, unless there is more here than was served."""
        self._is_paused = False
        if not self._is_held:
            self._connection.resumeProducing()

    def hold(self, is_held: bool) -> None:
        """Read no more until what came is served, whatever the protocol says meanwhile."""
        if is_held is self._is_held or self.disconnecting:
            return
        self._is_held = is_held
        if is_held:
            self._connection.pauseProducing()
        elif not self._is_paused:
            self._connection.resumeProducing()

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Let ``producer`` hear how full the connection is."""
        self._has_producer = True
        self._connection.registerProducer(_Gauge(producer, self._filled), streaming)

    def unregisterProducer(self) -> None:
        """Let it hear no more; harmless when none does."""
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
                pass  # RFC 6455, 5.6: text is UTF-8, what is not goes as bytes
        return BytesMessage(data)

    def _send(self, event: Event) -> None:
        """Send an event, unless the peer closed the WebSocket meanwhile: nothing may follow that."""
        try:
            data = self._encode(event)
        except LocalProtocolError:
            return
        self._connection.write(data)


@implementer(IPushProducer)
class _Gauge:
    """Hears how full the connection is, and tells the producer and whoever else is concerned."""

    def __init__(self, producer: Any, filled: Callable[[bool], None]) -> None:
        self._producer = producer
        self._filled = filled

    def pauseProducing(self) -> None:
        """The connection holds enough."""
        self._filled(True)
        self._producer.pauseProducing()

    def resumeProducing(self) -> None:
        """The connection has room again."""
        self._filled(False)
        self._producer.resumeProducing()

    def stopProducing(self) -> None:
        """The connection is gone."""
        self._producer.stopProducing()
