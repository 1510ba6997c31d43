"""A follower's side: passes the bytes of its clients to the leader, and back; clients wait while there is none."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import ClientFactory, Factory
from twisted.python.failure import Failure

from gateway.kernel.clock import Clock, Timer
from gateway.net.forwarding.introduction import encode_introduction
from gateway.net.forwarding.link import ClientSide, LeaderSide
from gateway.net.hangup import HangUpWatch, hang_up_of
from gateway.net.proxy_header import encode

#: The time between two looks at waiting clients and at the leader, in seconds.
_TICK_S: Final = 0.25

#: Time limit for a connection to the leader, in seconds.
_CONNECT_S: Final = 3.0


Address: TypeAlias = tuple[str, int]

#: How long a client is held while there is no leader, in seconds: longer than a usual election.
HOLD_S: Final = 15.0

#: So many clients of a listener are held at a time; further ones are refused.
MOST_WAITING: Final = 10_000

#: So many of them connect to the leader at a time: it may be rebuilding its state.
_MOST_ATTEMPTS: Final = 64


@dataclass(slots=True)
class ForwardingCounts:
    """The connections that are open, those that wait for a leader, all so far, those for which there was no leader in
    time, and the bytes of clients and of the leader.
    """

    open: int = 0
    waiting: int = 0
    connections: int = 0
    expired: int = 0
    received: int = 0
    sent: int = 0


class LeaderConnector(ClientFactory):
    """One attempt to reach the leader."""

    noisy = False

    def __init__(self, side: LeaderSide) -> None:
        self._side = side

    def buildProtocol(self, addr: IAddress | None) -> LeaderSide:
        """Return the side that waits for the leader's answer."""
        return self._side

    def clientConnectionFailed(self, connector: Any, reason: Failure) -> None:
        """Report that the leader cannot be reached."""
        self._side.end_attempt(False)


class ForwardingFactory(Factory):
    """Serves the port of one ``listener`` of a ``node`` by the leader, whom the ``secret`` convinces.

    ``leader`` returns the address at which the leader takes connections, or ``None``. Connections to a former leader
    are closed when there is another one: a host that is gone does not say so.
    """

    noisy = False

    def __init__(
        self,
        listener: str,
        secret: str,
        leader: Callable[[], Address | None],
        reactor: Any,  # Any: Twisted's interfaces are not types
        clock: Clock,
        counts: ForwardingCounts,
        node: str = "",
    ) -> None:
        self.counts = counts
        #: The clients that are connected to the leader, at an address.
        self.linked: dict[ClientSide, Address] = {}
        self._introduction = encode_introduction(secret, listener, node)
        self._leader = leader
        self._reactor = reactor
        self._clock = clock
        self._waiting: dict[ClientSide, LeaderSide | None] = {}
        self._next: deque[ClientSide] = deque()
        self._attempts = 0
        self._last_leader: Address | None = None
        self._timer: Timer | None = None
        self._hang_ups = HangUpWatch(reactor, self._hung_up)

    def buildProtocol(self, addr: IAddress | None) -> ClientSide | None:
        """Return the protocol of a client; ``None`` if too many wait."""
        if len(self._waiting) >= MOST_WAITING:
            self.counts.expired += 1
            return None
        return ClientSide(self._clock, self._count_received, self._client_made, self._client_lost)

    def refuse_waiting(self) -> None:
        """Close the clients that wait for the leader."""
        for client in list(self._waiting):
            client.abort()

    def close_clients(self) -> None:
        """Close all clients at once."""
        for client in [*self._waiting, *self.linked]:
            client.abort()

    # ---- Clients -------------------------------------------------------------------------------------------------

    def _client_made(self, client: ClientSide) -> None:
        self.counts.open += 1
        self.counts.waiting += 1
        self.counts.connections += 1
        client.until_s = self._clock.monotonic_s() + HOLD_S
        self._waiting[client] = None
        self._next.append(client)
        self._attempt_more()
        self._hang_ups.add(client)
        self._tick_later()

    def _client_lost(self, client: ClientSide) -> None:
        self.counts.open -= 1
        self.linked.pop(client, None)
        self._hang_ups.remove(client)
        if client in self._waiting:
            self.counts.waiting -= 1
            attempt = self._waiting.pop(client)
            if attempt is not None:
                self._attempts -= 1
                attempt.give_up()

    def _hung_up(self, client: ClientSide) -> None:
        """Close a client that is held. During an attempt it may have sent its end early, which the leader will get."""
        if self._waiting.get(client) is None:
            client.abort()

    def _count_received(self, size: int) -> None:
        self.counts.received += size

    def _count_sent(self, size: int) -> None:
        self.counts.sent += size

    # ---- The leader ----------------------------------------------------------------------------------------------

    def _attempt_more(self) -> None:
        """Connect waiting clients to the leader, the oldest first."""
        leader = self._leader()
        while leader is not None and self._next and self._attempts < _MOST_ATTEMPTS:
            client = self._next.popleft()
            if client in self._waiting:
                self._attempt(client, leader)

    def _attempt(self, client: ClientSide, leader: Address) -> None:
        transport: Any = client.transport
        peer, host = transport.getPeer(), transport.getHost()
        header = encode((peer.host, peer.port), (host.host, host.port))
        side = LeaderSide(
            self._clock,
            self._count_sent,
            self._introduction + header,
            lambda is_taken: self._attempted(client, side, leader, is_taken),
        )
        self._waiting[client] = side
        self._attempts += 1
        self._reactor.connectTCP(*leader, LeaderConnector(side), _CONNECT_S)

    def _attempted(self, client: ClientSide, side: LeaderSide, leader: Address, is_taken: bool) -> None:
        self._attempts -= 1
        if not is_taken:  # again with the next tick: the leader may be about to serve
            self._waiting[client] = None
            self._next.append(client)
            if hang_up_of(client.transport):
                client.abort()
            return
        del self._waiting[client]
        self._hang_ups.remove(client)
        self.counts.waiting -= 1
        self.linked[client] = leader
        client.join(side)
        self._attempt_more()

    # ---- Time ----------------------------------------------------------------------------------------------------

    def _tick_later(self) -> None:
        if self._timer is None and (self._waiting or self.linked):
            self._timer = self._clock.call_later(_TICK_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        now_s = self._clock.monotonic_s()
        for client in [each for each in self._waiting if each.until_s <= now_s]:
            self.counts.expired += 1
            client.abort()
        self._leave_former_leader()
        self._attempt_more()
        self._tick_later()

    def _leave_former_leader(self) -> None:
        leader = self._leader()
        if leader is None or leader == self._last_leader:
            return
        self._last_leader = leader
        for client in [each for each, served_by in self.linked.items() if served_by != leader]:
            client.leave()
