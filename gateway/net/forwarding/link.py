"""The two connections of one client on a follower: the client's own, and the one to the leader.

Each is the producer of the other: what one cannot send stops the reading of the other, so that no more than the buffers
of both transports is in memory. When one side has sent its end, the end is passed on after its bytes.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final
from typing import Protocol as TypingProtocol

from twisted.internet.interfaces import IHalfCloseableProtocol, IHandshakeListener
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer  # type: ignore[import-untyped]  # it has no types

from gateway.kernel.clock import Clock, Timer
from gateway.logs import StructuredLog
from gateway.net.certificates import subject_of
from gateway.net.forwarding.introduction import TAKEN
from gateway.net.forwarding.node_tls import has_certificate
from gateway.net.forwarding.routing import FIRST_CELL, ClientRoute
from gateway.net.hangup import keep_alive
from gateway.net.introduced import IntroducedClient
from gateway.net.message_transport import is_web, page_of
from gateway.net.proxied import hand_over
from gateway.net.tls_info import is_tls, tls_info

_log: Final = StructuredLog("forwarding")

#: Seconds that a connection stays open after one side has ended or is lost, for the bytes of the other one.
LINGER_S: Final = 15.0

#: Time limit for the TLS handshake of a client, in seconds.
_HANDSHAKE_S: Final = 10.0

#: Time limit for the answer of a leader, in seconds.
_ANSWER_S: Final = 5.0


@implementer(IHalfCloseableProtocol)
class Side(Protocol):
    """One of the two connections. ``other`` is the opposite one, from the answer of the leader on.

    ``count`` is called with the number of bytes of each read. ``tap`` takes the bytes instead of the other side, if
    there is one. ``leaving`` is asked at the end of this side, and returns whether it has taken care of that.
    """

    def __init__(self, clock: Clock, count: Callable[[int], None]) -> None:
        self.other: Side | None = None
        self.has_ended = False
        self.is_lost = False
        self.tap: Callable[[bytes], None] | None = None
        self.leaving: Callable[[], bool] = lambda: False
        self._clock = clock
        self._count = count
        self._lingering: Timer | None = None

    def prepare(self) -> None:
        """Send small writes at once, and notice a host that is gone."""
        transport: Any = self.transport
        transport.setTcpNoDelay(True)
        keep_alive(transport)

    @property
    def can_half_close(self) -> bool:
        """Whether this side can receive more after it was sent the end: TLS and WebSocket cannot."""
        return hasattr(self.transport, "loseWriteConnection") and not hasattr(self.transport, "getPeerCertificate")

    def produce_for(self, other: "Side") -> None:
        """Pass everything on to the other side from now on, as fast as it takes it."""
        self.other = other
        transport: Any = other.transport
        transport.registerProducer(self.transport, True)

    def dataReceived(self, data: bytes) -> None:
        """Pass bytes on."""
        self._count(len(data))
        if self.tap is not None:
            self.tap(data)
        elif self.other is not None:
            other: Any = self.other.transport
            other.write(data)

    def readConnectionLost(self) -> None:  # noqa: N802 - Twisted's name
        """Pass the end on, after the bytes before it."""
        self.has_ended = True
        if self.leaving():
            self.abort()
            return
        other = self.other
        if other is None or other.has_ended or not other.can_half_close:
            self.finish()
            if other is not None:
                other.finish()
            return
        transport: Any = other.transport
        transport.unregisterProducer()
        transport.loseWriteConnection()
        self.linger()

    def writeConnectionLost(self) -> None:  # noqa: N802 - Twisted's name
        """Do nothing: the other direction may go on."""

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Close the other side, after the bytes that it still has to send."""
        self.is_lost = True
        if self._lingering is not None:
            self._lingering.cancel()
        if not self.leaving() and self.other is not None:
            self.other.finish()

    def finish(self) -> None:
        """Close this side after everything is sent, and in any case soon."""
        transport: Any = self.transport
        if not self.is_lost:
            transport.unregisterProducer()
            transport.loseConnection()
            self.linger()

    def abort(self) -> None:
        """Close this side at once."""
        transport: Any = self.transport
        if not self.is_lost and transport is not None:
            transport.abortConnection()

    def linger(self) -> None:
        """Close this side at once after a while."""
        if self._lingering is None and not self.is_lost:
            self._lingering = self._clock.call_later(LINGER_S, self.abort)


class ClientRelay(TypingProtocol):
    """The relay of a client of which enough is remembered; see ``gateway/net/forwarding/relay.py``."""

    left_in_order: bool
    is_resumed: bool
    asked_s: float | None

    @property
    def is_restoring(self) -> bool:
        """Whether a new leader is being told what the former one knew."""
        ...

    def join(self, leader: Side) -> None:
        """Pass bytes on to this leader, and back."""
        ...

    def beat(self) -> None:
        """Send the client a sign of life in time, while no leader does."""
        ...

    def tell_held(self) -> None:
        """Tell the client that publishes wait for another leader, if it publishes."""
        ...

    def give_up(self, reason: str) -> None:
        """Tell the client that its connection ends."""
        ...


@implementer(IHandshakeListener)
class LeaderSide(Side):
    """The connection to the leader, which is sent the ``introduction`` first.

    ``answered`` is called once: with True when the leader takes the client, with False when it does not. With TLS the
    leader must have the certificate with the ``fingerprint`` before it is told anything.
    """

    def __init__(
        self,
        clock: Clock,
        count: Callable[[int], None],
        introduction: bytes,
        answered: Callable[[bool], None],
        fingerprint: str = "",
    ) -> None:
        super().__init__(clock, count)
        self._fingerprint = fingerprint
        self._introduction = introduction
        self._answered: Callable[[bool], None] | None = answered
        self._deadline: Timer | None = None

    def connectionMade(self) -> None:
        """Ask the leader to take the client. One that is stopped does not answer, and does not close either."""
        if self._answered is None:  # the client is gone
            self.abort()
            return
        self.prepare()
        self._deadline = self._clock.call_later(_ANSWER_S, self.abort)
        if not self._fingerprint:
            self._introduce()

    def handshakeCompleted(self) -> None:  # noqa: N802 - Twisted's name
        """Ask a leader with TLS, if it is the one that the cluster knows."""
        if has_certificate(self.transport, self._fingerprint):
            self._introduce()
            return
        transport: Any = self.transport
        peer = transport.getPeer()
        _log.warning("another node answers at the leader's address", peer=f"{peer.host}:{peer.port}")
        self.abort()

    def _introduce(self) -> None:
        transport: Any = self.transport
        transport.write(self._introduction)

    def dataReceived(self, data: bytes) -> None:
        """Take the answer, and pass the bytes after it on."""
        if self.other is None and self.tap is None:
            if self._answered is None:  # the client has gone on to another leader
                return
            if data[:1] != TAKEN:
                self.abort()
                return
            self.end_attempt(True)
            data = data[1:]
        if data:
            super().dataReceived(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Report a leader that did not answer, or close the client."""
        super().connectionLost(reason)
        self.end_attempt(False)

    def give_up(self) -> None:
        """Report nothing more, and close the connection if there is one already."""
        self._answered = None
        self.abort()

    def end_attempt(self, is_taken: bool) -> None:
        """Report whether the leader takes the client, once."""
        if self._deadline is not None:
            self._deadline.cancel()
        answered, self._answered = self._answered, None
        if answered is not None:
            answered(is_taken)


class AnsweringNode(TypingProtocol):
    """A node that answers some clients of a listener itself, and asks their leader for what it needs."""

    def answers(self, data: bytes) -> bool | None:
        """Whether the node answers a client that begins with these bytes; ``None`` while that is not clear."""
        ...

    def serve(self, client: "ClientSide", leader: LeaderSide, data: bytes) -> None:
        """Answer a client that began with these bytes, until one side ends. Both sides get taps."""
        ...


@implementer(IHandshakeListener)
class ClientSide(Side):
    """The connection of a client. It is not read before the leader takes it, but for the handshake of TLS.

    ``made`` and ``lost`` are called at its begin, after that handshake, and at its end. A client with a ``relay`` can
    outlive the leader. ``route`` is its way to a leader, if there are several cells. If the node is an ``answering``
    one, it looks at the first bytes.
    """

    def __init__(
        self,
        clock: Clock,
        count: Callable[[int], None],
        made: Callable[["ClientSide"], None],
        lost: Callable[["ClientSide"], None],
    ) -> None:
        super().__init__(clock, count)
        self.until_s = 0.0
        self.told_s = 0.0
        self.is_made = False
        self.relay: ClientRelay | None = None
        self.route: ClientRoute | None = None
        self.answering: AnsweringNode | None = None
        self._early: list[bytes] = []
        self._deadline: Timer | None = None
        self._made = made
        self._lost = lost

    @property
    def cell(self) -> int:
        """The cell whose leader serves the client."""
        return FIRST_CELL if self.route is None else self.route.cell

    @property
    def is_secure(self) -> bool:
        """Whether the client uses TLS."""
        return is_tls(self.transport)

    @property
    def introduced(self) -> IntroducedClient:
        """The introduction of the client to the leader."""
        transport = self.transport
        return IntroducedClient(tls_info(transport), subject_of(transport), is_web(transport), page_of(transport))

    def connectionMade(self) -> None:
        """Wait for a leader, or for the end of the TLS handshake."""
        self.prepare()
        if self.is_secure and tls_info(self.transport) is None:
            self._deadline = self._clock.call_later(_HANDSHAKE_S, self.abort)
        else:
            self._wait()

    def handshakeCompleted(self) -> None:  # noqa: N802 - Twisted's name
        """Wait for a leader."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._wait()

    def _wait(self) -> None:
        transport: Any = self.transport
        transport.pauseProducing()
        self.is_made = True
        self._made(self)

    def dataReceived(self, data: bytes) -> None:
        """Pass bytes on; keep those that came with the end of a handshake until there is a leader."""
        if self.other is None and self.tap is None:
            self._early.append(data)
        else:
            super().dataReceived(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Close the connection to the leader."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connectionLost(reason)
        self._lost(self)

    def join(self, leader: LeaderSide) -> None:
        """Pass bytes on to the leader, and back."""
        if self.relay is not None:
            self.relay.join(leader)
            return
        early, self._early = self._early, []
        if self.answering is not None:
            self.other, leader.other = leader, self
            self.tap = partial(self._begin, self.answering, leader, bytearray())
        else:
            self.produce_for(leader)
            leader.produce_for(self)
        for data in early:
            self.dataReceived(data)
        transport: Any = self.transport
        transport.resumeProducing()

    def _begin(self, answering: AnsweringNode, leader: LeaderSide, first: bytearray, data: bytes) -> None:
        """Take the first bytes, until it is clear who answers them."""
        first += data
        is_answered = answering.answers(bytes(first))
        if is_answered is None:
            return
        self.tap = None
        if is_answered:
            answering.serve(self, leader, bytes(first))
            return
        self.produce_for(leader)
        leader.produce_for(self)
        transport: Any = leader.transport
        transport.write(bytes(first))

    def give_up(self, reason: str) -> None:
        """Close the connection, after a notice if the client can be told."""
        if self.relay is not None and self.relay.is_resumed:
            self.relay.give_up(reason)
        else:
            self.abort()

    def pass_to(self, factory: Any) -> None:  # Any: Twisted's factories share no type
        """Let a protocol of this node answer the client."""
        transport: Any = self.transport
        protocol = factory.buildProtocol(transport.getPeer())
        if protocol is None:
            self.abort()
            return
        early, self._early = self._early, []
        hand_over(transport, protocol, b"".join(early))
        transport.resumeProducing()

    def leave(self) -> None:
        """Leave the leader at once; without a relay that closes the client too."""
        if self.other is not None:
            self.other.abort()
