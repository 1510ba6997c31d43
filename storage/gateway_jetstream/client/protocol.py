"""Moves bytes between a transport and a conversation: one write per turn, PINGs, and TLS."""

from collections.abc import Callable
from typing import Any, cast
from typing import Protocol as Contract

from twisted.internet.interfaces import IPushProducer
from twisted.internet.protocol import Protocol
from zope.interface import implementer  # type: ignore[import-untyped]  # it has no types

from gateway.kernel.errors import GatewayError
from gateway_jetstream.client.conversation import Happened, Leaving, NatsConversation, Opened, TlsWanted, Warned
from gateway_jetstream.codec.frames import Delivered
from gateway_jetstream.errors import TooMuch

#: A connection is given up after as many PINGs without an answer.
_UNANSWERED_PINGS = 2


class NatsConnectionOwner(Contract):
    """Gets the events of a connection."""

    def connection_opened(self, connection: "NatsConnection") -> None:
        """Take a connection that can be used."""
        ...

    def connection_delivered(self, message: Delivered) -> None:
        """Take a message."""
        ...

    def connection_warned(self, connection: "NatsConnection", text: str) -> None:
        """Take what the server refused, without closing the connection."""
        ...

    def connection_ended(self, connection: "NatsConnection", reason: str) -> None:
        """Take the end of a connection, opened or not; called once."""
        ...


@implementer(IPushProducer)
class NatsConnection(Protocol):
    """One connection. Owns its output until the socket takes it.

    ``tls`` returns what starts TLS. ``reactor`` makes delayed calls.
    """

    def __init__(
        self,
        reactor: Any,  # Any: Twisted's interfaces are not types
        owner: NatsConnectionOwner,
        server: str,
        conversation: NatsConversation,
        tls: Callable[[], Any],
        *,
        handshake_timeout_s: float,
        ping_interval_s: float,
        most_output: int,
    ) -> None:
        self.server = server
        self.conversation = conversation
        self._reactor = reactor
        self._owner = owner
        self._tls = tls
        self._handshake_timeout_s = handshake_timeout_s
        self._ping_interval_s = ping_interval_s
        self._most_output = most_output
        self._timer: Any = None
        self._flush_call: Any = None
        self._waiting = 0
        self._is_paused = False
        self._has_ended = False

    def connectionMade(self) -> None:
        """Wait for INFO, for a limited time."""
        assert self.transport is not None
        set_no_delay = getattr(self.transport, "setTcpNoDelay", None)
        if set_no_delay is not None:
            set_no_delay(True)
        self.transport.registerProducer(self, True)
        self._timer = self._reactor.callLater(
            self._handshake_timeout_s, self.close, f"no login within {self._handshake_timeout_s:g} s"
        )

    def dataReceived(self, data: bytes) -> None:
        """Take bytes; an error of the server ends the connection."""
        try:
            for happened in self.conversation.receive(data):
                self._take(happened)
                if self._has_ended:
                    return
        except GatewayError as error:
            self.close(getattr(error, "reason", str(error)))
            return
        self._flush_soon()

    def _take(self, happened: Happened) -> None:
        if isinstance(happened, Delivered):
            self._owner.connection_delivered(happened)
        elif isinstance(happened, TlsWanted):
            assert self.transport is not None
            self.transport.startTLS(self._tls())
            self.conversation.tls_started()
        elif isinstance(happened, Opened):
            self._timer.cancel()
            self._timer = self._reactor.callLater(self._ping_interval_s, self._ping)
            self._owner.connection_opened(self)
        elif isinstance(happened, Leaving):
            self.close("the server is about to stop")
        elif isinstance(happened, Warned):
            self._owner.connection_warned(self, happened.text)

    def send(self, data: bytes, at_once: bool = False) -> None:
        """Send bytes at the end of this turn, or ``at_once``. :raises TooMuch: if too many wait already."""
        if self._waiting + len(data) > self._most_output:
            raise TooMuch(f"more than {self._most_output} bytes wait for the network", server=self.server)
        self._waiting += len(data)
        self.conversation.send(data)
        if at_once:
            self._flush_now()
        else:
            self._flush_soon()

    def _flush_now(self) -> None:
        """Send what waits, without waiting for a poll, in which the thread of the store would take over for a while."""
        if self._flush_call is not None:
            self._flush_call.cancel()
        self._flush()
        write = getattr(self.transport, "doWrite", None)  # a socket has it, TLS does not
        if write is not None and not self._is_paused:
            write()

    def _flush_soon(self) -> None:
        if self._flush_call is None and self.conversation.has_outgoing and not self._is_paused and not self._has_ended:
            self._flush_call = self._reactor.callLater(0, self._flush)

    def _flush(self) -> None:
        self._flush_call = None
        if self._is_paused or self._has_ended or self.transport is None:
            return
        data = self.conversation.outgoing()
        self._waiting = 0
        if data:
            cast(Any, self.transport).write(data)  # Any: Twisted's interfaces are not types

    def _ping(self) -> None:
        if self.conversation.unanswered_pings >= _UNANSWERED_PINGS:
            self.close(f"no answer for {_UNANSWERED_PINGS * self._ping_interval_s:g} s")
            return
        self.conversation.ping()
        self._timer = self._reactor.callLater(self._ping_interval_s, self._ping)
        self._flush_soon()

    def close(self, reason: str) -> None:
        """End the connection now; what waits is not sent."""
        self._end(reason)
        if self.transport is not None:
            self.transport.abortConnection()

    def leave(self) -> None:
        """End the connection after everything was sent."""
        self._is_paused = False
        self._flush()
        self._end("closed by this client")
        if self.transport is not None:
            cast(Any, self.transport).unregisterProducer()
            cast(Any, self.transport).loseConnection()

    def connectionLost(self, reason: Any = None) -> None:
        """Report the end, unless this side closed the connection."""
        self._end("the server closed the connection" if reason is None else reason.getErrorMessage())

    def _end(self, reason: str) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        for call in (self._timer, self._flush_call):
            if call is not None and call.active():
                call.cancel()
        self._owner.connection_ended(self, reason)

    def pauseProducing(self) -> None:
        """Keep the output: the socket is full."""
        self._is_paused = True

    def resumeProducing(self) -> None:
        """Send what was kept."""
        self._is_paused = False
        self._flush_soon()

    def stopProducing(self) -> None:
        """Drop the output: the connection ends."""
        self._is_paused = True
