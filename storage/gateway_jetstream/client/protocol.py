"""Moves bytes between a transport and a conversation: input, PINGs, and TLS."""

from collections.abc import Callable
from typing import Any, cast
from typing import Protocol as Contract

from twisted.internet.protocol import Protocol

from gateway.kernel.errors import GatewayError
from gateway_jetstream.client.conversation import Happened, Leaving, NatsConversation, Opened, TlsWanted, Warned
from gateway_jetstream.client.output import NatsOutput
from gateway_jetstream.codec.frames import Delivered

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


class NatsConnection(Protocol):
    """One connection. ``tls`` returns what starts TLS. ``reactor`` makes delayed calls."""

    def __init__(
        self,
        reactor: Any,  # Any: Twisted's interfaces are not types
        owner: NatsConnectionOwner,
        server: str,
        conversation: NatsConversation,
        output: NatsOutput,
        tls: Callable[[], Any],
        *,
        handshake_timeout_s: float,
        ping_interval_s: float,
    ) -> None:
        self.server = server
        self.conversation = conversation
        self.output = output
        self._reactor = reactor
        self._owner = owner
        self._tls = tls
        self._handshake_timeout_s = handshake_timeout_s
        self._ping_interval_s = ping_interval_s
        self._timer: Any = None
        self._is_encrypted = False
        self._has_ended = False

    def connectionMade(self) -> None:
        """Wait for INFO, for a limited time."""
        assert self.transport is not None
        set_no_delay = getattr(self.transport, "setTcpNoDelay", None)
        if set_no_delay is not None:
            set_no_delay(True)
        self.output.begin(self.transport)
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
        self.output.flush_soon()

    def _take(self, happened: Happened) -> None:
        if isinstance(happened, Delivered):
            self._owner.connection_delivered(happened)
        elif isinstance(happened, TlsWanted):
            assert self.transport is not None
            self._is_encrypted = True
            self.transport.startTLS(self._tls())
            self.conversation.tls_started()
        elif isinstance(happened, Opened):
            if not self._is_encrypted:
                self.output.write_directly()
            self._timer.cancel()
            self._timer = self._reactor.callLater(self._ping_interval_s, self._ping)
            self._owner.connection_opened(self)
        elif isinstance(happened, Leaving):
            self.close("the server is about to stop")
        elif isinstance(happened, Warned):
            self._owner.connection_warned(self, happened.text)

    def _ping(self) -> None:
        if self.conversation.unanswered_pings >= _UNANSWERED_PINGS:
            self.close(f"no answer for {_UNANSWERED_PINGS * self._ping_interval_s:g} s")
            return
        self.conversation.ping()
        self._timer = self._reactor.callLater(self._ping_interval_s, self._ping)
        self.output.flush_soon()

    def close(self, reason: str) -> None:
        """End the connection now; what waits is not sent."""
        self._end(reason)
        if self.transport is not None:
            self.transport.abortConnection()

    def leave(self) -> None:
        """End the connection after everything was sent."""
        self.output.finish()
        self._end("closed by this client")
        if self.transport is not None:
            cast(Any, self.transport).loseConnection()

    def connectionLost(self, reason: Any = None) -> None:
        """Report the end, unless this side closed the connection."""
        self._end("the server closed the connection" if reason is None else reason.getErrorMessage())

    def _end(self, reason: str) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        self.output.end()
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._owner.connection_ended(self, reason)
