"""A follower's side: passes the bytes of its clients to the leader, and back; clients wait while there is none."""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import ClientFactory, Factory
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure

from gateway.kernel.clock import Clock, Timer
from gateway.logs import StructuredLog
from gateway.net.forwarding.counts import ForwardingCounts
from gateway.net.forwarding.introduction import encode_introduction
from gateway.net.forwarding.link import AnsweringNode, ClientSide, LeaderSide
from gateway.net.forwarding.reaching import Reaching
from gateway.net.forwarding.relay import ResumingRelay
from gateway.net.forwarding.resumable import Resumable
from gateway.net.forwarding.routing import FIRST_CELL, Directions, Leader, route_of
from gateway.net.hangup import HangUpWatch, hang_up_of
from gateway.net.proxy_header import encode

_log: Final = StructuredLog("forwarding")

#: The time between two looks at waiting clients and at the leader, in seconds.
_TICK_S: Final = 0.25

#: Time limit for a connection to the leader, in seconds.
_CONNECT_S: Final = 3.0

#: How long a client is held that waits for an answer, of a login or a request, while there is no leader, in seconds:
#: longer than a usual election.
HOLD_S: Final = 15.0

#: How long a client is held that waits for none, unless the settings say otherwise, in seconds.
IDLE_HOLD_S: Final = 60.0

#: A client that publishes is told after so long that there is no leader, in seconds: a hand-over takes less.
_TOLD_S: Final = 2.0

#: How long a leader may take to go on with a client, in seconds.
_RESTORE_S: Final = 10.0

#: So many clients of a listener are held at a time; further ones are refused.
MOST_WAITING: Final = 10_000

#: The epoch of a leader that this node has left: no leader to come has it.
_LEFT: Final = -1

#: So many of them connect to the leader at a time: it may be rebuilding its state.
_MOST_ATTEMPTS: Final = 64


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

    ``leader`` returns that of a cell, or ``None``. Connections to a former leader are closed when there is another one:
    a host that is gone does not say so. ``resumable`` returns what remembers a new client, so that it can go on with
    another leader; ``None`` for a client that cannot. Clients with TLS are passed on with it too: ``tls`` has the
    parameters. ``idle_hold_s`` is how long a client is held that had a leader and waits for no answer. ``fault``
    returns why this node cannot know of a leader, empty if it could; clients for whom there is none are given to
    ``refusing``, if there is one, at once while there is a fault. ``directions`` lead clients to the cells of their
    virtual hosts, if there are several cells.
    """

    noisy = False

    def __init__(
        self,
        listener: str,
        secret: str,
        leader: Callable[[int], Leader | None],
        reactor: Any,  # Any: Twisted's interfaces are not types
        clock: Clock,
        counts: ForwardingCounts,
        node: str = "",
        resumable: Callable[[], Resumable | None] = lambda: None,
        tls: Any = None,
        idle_hold_s: float = IDLE_HOLD_S,
        refusing: Factory | None = None,
        fault: Callable[[], str] = str,
        directions: Directions | None = None,
    ) -> None:
        self.counts = counts
        #: Looks at the first bytes of clients that cannot be resumed, and answers some of them.
        self.answering: AnsweringNode | None = None
        #: The clients that are connected to a leader.
        self.linked: dict[ClientSide, Leader] = {}
        self._introduction = partial(encode_introduction, secret, listener, node)
        self._tls = tls
        self._directions = directions
        self._entering = 0
        self._listener = listener
        self._leader = leader
        self._resumable = resumable
        self._idle_hold_s = idle_hold_s
        self._refusing = refusing
        self._fault = fault
        #: The leaders that clients which are held had before.
        self._former: dict[ClientSide, Leader] = {}
        #: The clients of which a leader is being told.
        self._restoring: dict[ClientSide, None] = {}
        self._reactor = reactor
        self._clock = clock
        self._waiting: dict[ClientSide, LeaderSide | None] = {}
        #: Those that no attempt is made for, by the cell whose leader is to serve them, the oldest first.
        self._next: dict[int, deque[ClientSide]] = {FIRST_CELL: deque()}
        self._attempts = 0
        self._last_leaders: dict[int, Leader] = {}
        self._reaching = Reaching(reactor, self._leave_unreachable)
        self._timer: Timer | None = None
        self._hang_ups = HangUpWatch(reactor, self._hung_up)

    def buildProtocol(self, addr: IAddress | None) -> ClientSide | None:
        """Return the protocol of a client; ``None`` if too many wait."""
        if len(self._waiting) + self._entering >= MOST_WAITING:
            self.counts.expired += 1
            return None
        self._entering += 1
        return ClientSide(self._clock, self._count_received, self._client_made, self._client_lost)

    def refuse_waiting(self) -> None:
        """Close the clients that wait for the leader."""
        for client in list(self._waiting):
            self._give_up(client, "Node was put into maintenance mode")

    def close_clients(self) -> None:
        """Close all clients at once."""
        for client in [*self._waiting, *self.linked]:
            client.abort()

    # ---- Clients -------------------------------------------------------------------------------------------------

    def _client_made(self, client: ClientSide) -> None:
        self._entering -= 1
        self.counts.open += 1
        self.counts.connections += 1
        resumable = self._resumable()
        client.answering = self.answering
        if resumable is not None:
            held, rerouted = partial(self._client_held, client), partial(self._client_rerouted, client)
            client.relay = ResumingRelay(client, resumable, self._clock, held, self._client_ended, rerouted)
            client.route = resumable.route = route_of(self._directions, client.transport)
        self._hold(client)
        self._attempt_more()
        self._hang_ups.add(client)
        self._tick_later()

    def _hold(self, client: ClientSide) -> None:
        self.counts.waiting += 1
        self._waiting[client] = None
        self._queue(client)
        if client not in self._restoring:  # it has the same time for all leaders that are lost on the way
            now_s = self._clock.monotonic_s()
            client.told_s = now_s + _TOLD_S
            client.until_s = now_s + (self._idle_hold_s if client in self._former else HOLD_S)

    def _queue(self, client: ClientSide) -> None:
        """Let a client wait for the leader of its cell; of another one if that has none and the client may choose."""
        if client.route is not None and not client.route.is_known:
            for _ in client.route.cells:
                if self._leader(client.cell) is not None:
                    break
                client.route.try_next()
        self._next.setdefault(client.cell, deque()).append(client)

    def _client_rerouted(self, client: ClientSide) -> None:
        """Connect a client to the leader of the cell in which its virtual host is."""
        self.linked.pop(client, None)
        self._hold(client)
        self._attempt_more()
        self._hang_ups.add(client)
        self._tick_later()

    def _client_held(self, client: ClientSide) -> None:
        """Let a client wait for another leader: its own is lost."""
        self._former[client] = self.linked.pop(client)
        self._hold(client)
        self._restoring[client] = None
        self._hang_ups.add(client)
        self._tick_later()
        if len(self._waiting) > MOST_WAITING:
            self._give_up(client, "too many clients wait for a leader of the cluster")

    def _client_ended(self) -> None:
        self.counts.not_resumed += 1

    def _give_up(self, client: ClientSide, reason: str) -> None:
        """Close a client that waits, after a notice if it can be told."""
        if self._refusing is not None:
            self._client_lost(client)
            client.pass_to(self._refusing)
            return
        self._no_longer_waiting(client)
        client.give_up(reason)

    def _client_lost(self, client: ClientSide) -> None:
        if not client.is_made:
            self._entering -= 1
            return
        self.counts.open -= 1
        self.linked.pop(client, None)
        self._no_longer_waiting(client)

    def _no_longer_waiting(self, client: ClientSide) -> None:
        self._hang_ups.remove(client)
        self._former.pop(client, None)
        self._restoring.pop(client, None)
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
        """Connect waiting clients to the leaders, the oldest first."""
        for cell, waiting in self._next.items():
            if waiting and (leader := self._leader(cell)) is not None:
                self._attempt_some(waiting, leader)

    def _attempt_some(self, waiting: deque[ClientSide], leader: Leader) -> None:
        """Connect clients to one leader."""
        later = []
        while waiting and self._attempts < _MOST_ATTEMPTS:
            client = waiting.popleft()
            if client not in self._waiting:
                continue
            if self._has_just_ended(client, leader) or (client.is_secure and not leader.fingerprint):
                later.append(client)
            else:
                self._attempt(client, leader)
        waiting.extendleft(reversed(later))

    def _has_just_ended(self, client: ClientSide, leader: Leader) -> bool:
        """Whether this leader has said to the client that it ends: it may still take connections for a moment."""
        return client.relay is not None and client.relay.left_in_order and self._former.get(client) == leader

    def _attempt(self, client: ClientSide, leader: Leader) -> None:
        transport: Any = client.transport
        peer, host = transport.getPeer(), transport.getHost()
        header = encode((peer.host, peer.port), (host.host, host.port))
        side = LeaderSide(
            self._clock,
            self._count_sent,
            self._introduction(is_resumed=client in self._former, client=client.introduced, cell=leader.cell) + header,
            lambda is_taken: self._attempted(client, side, leader, is_taken),
            leader.fingerprint if client.is_secure else "",
        )
        self._waiting[client] = side
        self._attempts += 1
        connector: Any = LeaderConnector(side)
        if client.is_secure:
            connector = TLSMemoryBIOFactory(self._tls, True, connector, self._reactor)
        self._reactor.connectTCP(*leader.address, connector, _CONNECT_S)

    def _attempted(self, client: ClientSide, side: LeaderSide, leader: Leader, is_taken: bool) -> None:
        self._attempts -= 1
        if not is_taken:  # again with the next tick: the leader may be about to serve
            self._waiting[client] = None
            if client.route is not None:
                client.route.try_next()
            self._queue(client)
            if hang_up_of(client.transport):
                client.abort()
            return
        del self._waiting[client]
        self._hang_ups.remove(client)
        self.counts.waiting -= 1
        former = self._former.pop(client, None)
        if former == leader:  # it lives, and has closed this connection on purpose
            side.abort()
            client.abort()
        else:
            self.counts.resumed += former is not None
            self.linked[client] = leader
            client.until_s = max(client.until_s, self._clock.monotonic_s() + _RESTORE_S)
            client.join(side)
        self._attempt_more()

    # ---- Time ----------------------------------------------------------------------------------------------------

    def _tick_later(self) -> None:
        if self._timer is None and (self._waiting or self.linked):
            self._timer = self._clock.call_later(_TICK_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        now_s = self._clock.monotonic_s()
        for client in list(self._waiting):
            if reason := self._reason_to_end(client, now_s):
                self.counts.expired += 1
                self._give_up(client, reason)
        self._watch_restored(now_s)
        self._leave_former_leader()
        self._move_undecided()
        self._attempt_more()
        self._tick_later()

    def _reason_to_end(self, client: ClientSide, now_s: float) -> str:
        """Return why a client that waits for a leader is held no longer; empty if it is held on."""
        asked_s = None if client.relay is None else client.relay.asked_s
        if asked_s is not None and now_s - asked_s >= HOLD_S:
            return f"no node of the cluster leads, and a request was not answered for {HOLD_S:g} s"
        if self._refusing is not None and self._leader(client.cell) is None and (fault := self._fault()):
            return fault
        return "no node of the cluster leads in time" if client.until_s <= now_s else ""

    def _watch_restored(self, now_s: float) -> None:
        """Keep clients alive that had a leader and have none yet; end those of which the next one is told too long."""
        resumed = 0
        for client in list(self._restoring):
            assert client.relay is not None
            is_waiting = client in self._waiting
            if not is_waiting and not client.relay.is_restoring:
                del self._restoring[client]
                resumed += 1
            elif not is_waiting and client.until_s <= now_s:
                self.counts.expired += 1
                self._give_up(client, "the next leader of the cluster could not go on in time")
            else:
                client.relay.beat()
                if client.told_s <= now_s:
                    client.relay.tell_held()
        if resumed:
            _log.info("clients go on with another leader", listener=self._listener, clients=resumed)

    def _leave_former_leader(self) -> None:
        for cell in self._next:
            leader = self._leader(cell)
            if leader is None:
                self._reaching.look(by for by in self.linked.values() if by.cell == cell and by.epoch != _LEFT)
            elif leader != self._last_leaders.get(cell):
                self._last_leaders[cell] = leader
                for client in [each for each, by in self.linked.items() if by.cell == cell and by != leader]:
                    client.leave()

    def _leave_unreachable(self, leader: Leader) -> None:
        """Leave a leader that cannot be reached. If it leads on, clients go on with it as with another one."""
        if self._leader(leader.cell) is None:
            for client in [each for each, by in self.linked.items() if by == leader]:
                self.linked[client] = replace(leader, epoch=_LEFT)
                client.leave()

    def _move_undecided(self) -> None:
        """Let clients that have not named a virtual host try another cell, while theirs has no leader."""
        for cell, waiting in list(self._next.items()):
            if self._directions is not None and waiting and self._leader(cell) is None:
                held = [client for client in waiting if client in self._waiting]
                waiting.clear()
                for client in held:
                    self._queue(client)
