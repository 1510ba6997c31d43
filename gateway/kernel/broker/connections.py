"""Who is connected, whatever the protocol: for listings, alarms and forced ends."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from gateway.kernel.counters import Counters
from gateway.kernel.messages.message import Arguments
from gateway.kernel.queueing.channel_counters import Publishes
from gateway.kernel.settings.limits import ConnectionLimits

if TYPE_CHECKING:
    from gateway.kernel.queueing.consumer import Consumer
    from gateway.kernel.queueing.queue import Queue

#: How often peers are told that time goes by: fine enough for heartbeats of one second, which send two in that time.
TICKS_PER_S: Final = 2


@dataclass(frozen=True, slots=True)
class TlsInfo:
    """What was agreed on in a TLS handshake, by OpenSSL's names, and the client's certificate, empty without one.

    ``subject`` and ``issuer`` are distinguished names as RFC 4514 writes them.
    """

    protocol: str
    cipher: str = ""
    key_exchange: str = ""
    hash: str = ""
    subject: str = ""
    issuer: str = ""
    validity: str = ""


@dataclass(frozen=True, slots=True)
class ConnectionInfo:
    """What a listing tells of a connection. ``timeout_s`` is the heartbeat interval; sizes are in bytes.

    ``received`` and ``sent`` are (bytes, reads or writes), ``pending`` is what waits to be sent. ``tls`` is ``None``
    where there is none, or nothing is known of it. ``variables`` are what patterns of topics may name.
    """

    protocol: str
    state: str
    host: str
    port: int
    peer_host: str
    peer_port: int
    is_tls: bool
    connected_at_ms: int
    auth_mechanism: str
    client_properties: Arguments
    frame_max: int
    channel_max: int
    timeout_s: int
    received: tuple[int, int]
    sent: tuple[int, int]
    pending: int = 0
    tls: TlsInfo | None = None
    variables: Arguments = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChannelInfo:
    """What a listing tells of a channel, or of what takes its place in another protocol.

    The uncommitted are held by a transaction. ``prefetch`` is for new consumers each, ``shared_prefetch`` for all.
    ``counters`` sum up the channel; ``publishes`` splits them by the exchange's name, ``deliveries`` by the queue.
    ``unroutable`` messages were dropped, ``returned`` ones came back.
    """

    number: int
    consumers: "tuple[Consumer, ...]" = ()
    prefetch: int = 0
    shared_prefetch: int = 0
    is_confirming: bool = False
    is_transactional: bool = False
    unacknowledged: int = 0
    unconfirmed: int = 0
    uncommitted: int = 0
    acks_uncommitted: int = 0
    counters: Counters = field(default_factory=Counters)
    confirmed: int = 0
    returned: int = 0
    unroutable: int = 0
    publishes: Mapping[str, Publishes] = field(default_factory=dict)
    deliveries: "Mapping[Queue, Counters]" = field(default_factory=dict)


class Peer(Protocol):
    """One connection, as the rest of the gateway sees it."""

    name: str

    @property
    def vhost_name(self) -> str:
        """The virtual host it is in, empty before it is."""
        ...

    @property
    def user_name(self) -> str:
        """Who it is, empty before that is known."""
        ...

    @property
    def channel_count(self) -> int:
        """How many channels are open."""
        ...

    def info(self) -> ConnectionInfo:
        """Tell what a listing shows of it."""
        ...

    def channels(self) -> Sequence[ChannelInfo]:
        """Tell what a listing shows of its channels."""
        ...

    def give_up(self, reason: str) -> None:
        """End it without a word to the client."""
        ...

    def force_close(self, reason: str) -> None:
        """End it from this side and tell it why."""
        ...

    def update_flow_control(self) -> None:
        """Look again whether its publishes may go on: an alarm was raised or cleared, or the disk caught up."""
        ...

    def fail_confirms(self) -> None:
        """Refuse every publish that waits for its confirm."""
        ...

    def fail(self) -> None:
        """End, because an exception came out of a call; called while it is being handled."""
        ...

    def tick(self) -> None:
        """Another part of a second has gone by: mind heartbeats and time limits."""
        ...


class Logins:
    """How often somebody tried to log in, and how it ended."""

    __slots__ = ("failed", "succeeded")

    def __init__(self) -> None:
        self.succeeded = 0
        self.failed = 0


class Connections:
    """The peers of one node. ``opened`` and ``channels_opened`` count them since the start; adapters count channels.

    ``logins_by_protocol`` has RabbitMQ's short names: ``amqp091``, ``http``.
    """

    def __init__(self) -> None:
        self._peers: dict[Peer, None] = {}
        self._newcomers: dict[Peer, None] = {}
        self._places: dict[Peer, tuple[str, str]] = {}
        self._count_by_vhost: Counter[str] = Counter()
        self._count_by_user: Counter[str] = Counter()
        self._channels_by_user: Counter[str] = Counter()
        self.limits = ConnectionLimits()
        self.opened = 0
        self.channels_opened = 0
        self.logins_by_protocol: dict[str, Logins] = {}

    def __len__(self) -> int:
        return len(self._peers)

    def __iter__(self) -> Iterator[Peer]:
        """Yield the peers there are; whoever takes several turns over it does not meet those that left meanwhile."""
        return (peer for peer in tuple(self._peers) if peer in self._peers)

    def add(self, peer: Peer) -> None:
        """Count a new peer in, and drop the oldest that has not logged in where there are too many of these."""
        self._peers[peer] = None
        self._newcomers[peer] = None
        self.opened += 1
        most = self.limits.unauthenticated
        if most and len(self._newcomers) > most:
            oldest = next(iter(self._newcomers))
            del self._newcomers[oldest]
            oldest.give_up("too many connections have not logged in")

    def entered(self, peer: Peer) -> None:
        """Count a peer of ``add`` as one of its user, in its virtual host."""
        if peer in self._peers and peer not in self._places:
            self._newcomers.pop(peer, None)
            place = self._places[peer] = peer.vhost_name, peer.user_name
            self._count_by_vhost[place[0]] += 1
            self._count_by_user[place[1]] += 1

    def remove(self, peer: Peer) -> None:
        """Count a peer out; harmless twice."""
        self._peers.pop(peer, None)
        self._newcomers.pop(peer, None)
        place = self._places.pop(peer, None)
        if place is not None:
            _count_out(self._count_by_vhost, place[0])
            _count_out(self._count_by_user, place[1])

    def count_in(self, vhost: str) -> int:
        """Return how many peers are in a virtual host."""
        return self._count_by_vhost[vhost]

    def count_of(self, user: str) -> int:
        """Return how many peers of a user are in some virtual host."""
        return self._count_by_user[user]

    def channels_of(self, user: str) -> int:
        """Return how many channels a user has."""
        return self._channels_by_user[user]

    def channel_opened(self, user: str) -> None:
        """Count a channel in."""
        self.channels_opened += 1
        self._channels_by_user[user] += 1

    def channel_closed(self, user: str) -> None:
        """Count a channel out."""
        _count_out(self._channels_by_user, user)

    def count_login(self, protocol: str, has_succeeded: bool) -> None:
        """Count somebody's attempt to log in, whether or not a connection comes of it."""
        logins = self.logins_by_protocol.setdefault(protocol, Logins())
        logins.succeeded += has_succeeded
        logins.failed += not has_succeeded

    def force_close(self, reason: str, which: Callable[[Peer], bool] = lambda peer: True) -> None:
        """End those connections from this side."""
        for _ in self.force_closes(reason, which):
            pass

    def force_closes(self, reason: str, which: Callable[[Peer], bool] = lambda peer: True) -> Iterator[None]:
        """End the connections that are these now from this side, one each time it is asked on."""
        return self._closing(reason, [peer for peer in self._peers if which(peer)])

    def _closing(self, reason: str, peers: Sequence[Peer]) -> Iterator[None]:
        for peer in peers:
            if peer in self._peers:
                peer.force_close(reason)
                yield


def _count_out(counts: Counter[str], key: str) -> None:
    """Count one less; what is down to none is forgotten, so that names do not pile up."""
    if counts[key] > 1:
        counts[key] -= 1
    else:
        del counts[key]
