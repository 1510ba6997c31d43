"""The open connections of all protocols, for listings, alarms and forced closes."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from gateway.kernel.broker.ticking import Ticker, Ticking, present
from gateway.kernel.clock import drained
from gateway.kernel.counters import Counters
from gateway.kernel.events import Event
from gateway.kernel.messages.message import Arguments
from gateway.kernel.messages.origin import Origin
from gateway.kernel.queueing.channel_counters import PublishCounters
from gateway.kernel.settings.limits import ConnectionLimits
from gateway.kernel.vhosts.event_listeners import EventListeners

if TYPE_CHECKING:
    from gateway.kernel.messages.queued_message import QueuedMessage
    from gateway.kernel.queueing.consumer import ConsumedQueue, Consumer

#: Calls of ``tick`` per second: with two, a heartbeat interval of one second can be kept.
TICKS_PER_S: Final = 2

#: The longest name of a user in the report of a login, in characters: any client may send one.
_LONGEST_USER: Final = 256

#: Connections that are compared between two readings of the clock.
_STEP: Final = 64


@dataclass(frozen=True, slots=True)
class TlsInfo:
    """The outcome of a TLS handshake, in OpenSSL's names, and the client's certificate, empty without one.

    ``subject`` and ``issuer`` are distinguished names as in RFC 4514.
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
    """A connection as listings show it. ``timeout_s`` is the heartbeat interval; sizes are in bytes.

    ``received`` and ``sent`` are (bytes, number of reads or writes), ``pending`` is the size of the output buffer.
    ``tls`` is ``None`` without TLS or when unknown. ``variables`` can be used in topic permission patterns.
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
    """A channel, or its equivalent in another protocol, as listings show it.

    ``uncommitted`` counts publishes of a transaction. ``prefetch`` applies to each new consumer, ``shared_prefetch`` to
    all of them. ``totals`` returns the totals of the channel; ``publishes`` splits them by exchange, ``deliveries`` by
    queue. ``unroutable`` messages were dropped, ``returned`` ones were sent back.
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
    totals: Callable[[], Counters] = Counters
    confirmed: int = 0
    returned: int = 0
    unroutable: int = 0
    publishes: Mapping[str, PublishCounters] = field(default_factory=dict)
    deliveries: "Mapping[ConsumedQueue, Counters]" = field(default_factory=dict)

    @property
    def counters(self) -> Counters:
        """The totals of the channel, added up on request: it may have counters of 10,000 queues."""
        return self.totals()


class PeerLoad(NamedTuple):
    """The channels of a connection that have published, and its consumers. ``protocol`` is that of its origins."""

    protocol: str
    publishers: int
    consumers: int


class Peer(Ticker, Protocol):
    """One client connection, as the rest of the gateway sees it."""

    name: str

    @property
    def vhost_name(self) -> str:
        """The virtual host, empty before login."""
        ...

    @property
    def user_name(self) -> str:
        """The user, empty before login."""
        ...

    @property
    def channel_count(self) -> int:
        """The number of open channels."""
        ...

    @property
    def octets(self) -> tuple[int, int]:
        """The bytes received and sent."""
        ...

    def info(self) -> ConnectionInfo:
        """Return the connection as listings show it."""
        ...

    def channels(self) -> Sequence[ChannelInfo]:
        """Return the channels as listings show them."""
        ...

    def load(self) -> PeerLoad | None:
        """Add the deliveries since the last call to the totals of the virtual host; return what the connection holds.

        ``None`` without an open virtual host or channel.
        """
        ...

    def unsettled(self) -> "Iterable[tuple[ConsumedQueue, QueuedMessage, int]]":
        """Return the deliveries that the client has not settled: queue, message and number of the channel."""
        ...

    def give_up(self, reason: str) -> None:
        """Close the connection without notifying the client."""
        ...

    def force_close(self, reason: str) -> None:
        """Close the connection and send the reason to the client."""
        ...

    def hold_back(self) -> None:
        """Read nothing more from the client until ``force_close``."""
        ...

    def update_flow_control(self) -> None:
        """Check again whether publishes are blocked: an alarm was raised or cleared, or the disk caught up."""
        ...

    def fail_confirms(self) -> None:
        """Fail every publish that waits for its confirm."""
        ...


class Logins:
    """Numbers of successful and failed logins."""

    __slots__ = ("failed", "succeeded")

    def __init__(self) -> None:
        self.succeeded = 0
        self.failed = 0


class Connections:
    """The connections of one node.

    ``opened``, ``channels_opened`` and ``channels_closed`` are totals since the start; adapters report channels.
    ``logins_by_protocol`` has RabbitMQ's short names as keys: ``amqp091``, ``http``. Events of connections, channels
    and logins go to ``listeners`` only: the adapters log them, and a name that a client claims may be its password.
    """

    def __init__(self) -> None:
        self.ticking = Ticking()
        self._peers: dict[Peer, None] = {}
        self._newcomers: dict[Peer, None] = {}
        self._login_by_peer: dict[Peer, tuple[str, str]] = {}
        self._count_by_vhost: Counter[str] = Counter()
        self._count_by_user: Counter[str] = Counter()
        self._channels_by_user: Counter[str] = Counter()
        self.listeners: EventListeners | None = None
        self.limits = ConnectionLimits()
        self.opened = 0
        self.channels_opened = 0
        self.channels_closed = 0
        self.logins_by_protocol: dict[str, Logins] = {}

    def __len__(self) -> int:
        return len(self._peers)

    def __contains__(self, peer: object) -> bool:
        return peer in self._peers

    def __iter__(self) -> Iterator[Peer]:
        """Yield the current connections, except those that close during the iteration."""
        return present(self._peers)

    def active(self) -> list[Peer]:
        """Return the connections that were awake since the last call. The statistics call this, for each sample."""
        return cast("list[Peer]", self.ticking.take_active())

    def add(self, peer: Peer) -> None:
        """Add a new connection, and drop the oldest unauthenticated one if there are too many of these."""
        self._peers[peer] = None
        self.ticking.add(peer)
        self._newcomers[peer] = None
        self.opened += 1
        most = self.limits.unauthenticated
        if most and len(self._newcomers) > most:
            oldest = next(iter(self._newcomers))
            del self._newcomers[oldest]
            oldest.give_up("too many connections have not logged in")

    def entered(self, peer: Peer) -> None:
        """Count an added connection for its user and virtual host, once it has logged in."""
        if peer in self._peers and peer not in self._login_by_peer:
            self._newcomers.pop(peer, None)
            place = self._login_by_peer[peer] = _place_of(peer.vhost_name, peer.user_name)
            self._count_by_vhost[place[0]] += 1
            self._count_by_user[place[1]] += 1
            if (listeners := self._present_listeners) is not None:
                listeners.pass_on(Event("connection.created", peer.vhost_name, peer.name, _details_of(peer)))

    def remove(self, peer: Peer) -> None:
        """Remove a connection; calling it twice is harmless."""
        if self._peers.pop(peer, self) is None:
            self.ticking.remove(peer)
        self._newcomers.pop(peer, None)
        place = self._login_by_peer.pop(peer, None)
        if place is not None:
            _count_out(self._count_by_vhost, place[0])
            _count_out(self._count_by_user, place[1])
            if (listeners := self._present_listeners) is not None:
                listeners.pass_on(Event("connection.closed", place[0], peer.name, {"user": place[1]}))

    def update_flow_control_of(self, name: str) -> None:
        """Check again whether the publishes of the connection of this name are blocked."""
        for peer in self:
            if peer.name == name:
                peer.update_flow_control()

    def count_in(self, vhost: str) -> int:
        """Return the number of connections to a virtual host."""
        return self._count_by_vhost[vhost]

    def count_of(self, user: str) -> int:
        """Return the number of connections of a user."""
        return self._count_by_user[user]

    def users(self) -> list[str]:
        """Return the users that have connections."""
        return list(self._count_by_user)

    def channels_of(self, user: str) -> int:
        """Return the number of channels of a user."""
        return self._channels_by_user[user]

    def channel_opened(self, user: str, origin: Origin | None = None, vhost: str = "") -> None:
        """Count an opened channel, and report it."""
        self.channels_opened += 1
        self._channels_by_user[user] += 1
        self._emit_channel("channel.created", origin, vhost)

    def channel_closed(self, user: str, origin: Origin | None = None, vhost: str = "") -> None:
        """Count a closed channel, and report it."""
        self.channels_closed += 1
        _count_out(self._channels_by_user, user)
        self._emit_channel("channel.closed", origin, vhost)

    def _emit_channel(self, name: str, origin: Origin | None, vhost: str) -> None:
        if origin is not None and (listeners := self._present_listeners) is not None:
            details = {"connection": origin.connection, "number": origin.channel, "user": origin.user}
            listeners.pass_on(Event(name, vhost, f"{origin.connection} ({origin.channel})", details))

    @property
    def _present_listeners(self) -> EventListeners | None:
        """The event listeners, if there are any: most brokers have none, and need no event per login."""
        return self.listeners if self.listeners is not None and self.listeners.is_needed else None

    def count_login(
        self, protocol: str, has_succeeded: bool, user: str = "", peer_host: str = "", mechanism: str = ""
    ) -> None:
        """Count a login attempt, whether or not a connection results from it, and report it."""
        logins = self.logins_by_protocol.setdefault(protocol, Logins())
        logins.succeeded += has_succeeded
        logins.failed += not has_succeeded
        self.report_login(protocol, has_succeeded, user, peer_host, mechanism)

    def report_login(
        self, protocol: str, has_succeeded: bool, user: str, peer_host: str = "", mechanism: str = ""
    ) -> None:
        """Report a login attempt. ``user`` is the name that the client claims, cut if it is very long."""
        if (listeners := self._present_listeners) is not None:
            name = "user.authentication.success" if has_succeeded else "user.authentication.failure"
            kind = "http" if protocol == "http" else "network"
            details = {"connection_type": kind, "protocol": protocol, "peer_host": peer_host}
            if mechanism:
                details["auth_mechanism"] = mechanism
            listeners.pass_on(Event(name, "", user[:_LONGEST_USER], details))

    def force_close(self, reason: str, which: Callable[[Peer], bool] = lambda peer: True) -> None:
        """Close the matching connections from this side."""
        for _ in self.force_closes(reason, which):
            pass

    def force_closes(self, reason: str, which: Callable[[Peer], bool] = lambda peer: True) -> Iterator[None]:
        """Close the present connections that match from this side, one per step."""
        return self._closing(reason, which, list(self._peers))

    def _closing(self, reason: str, which: Callable[[Peer], bool], peers: list[Peer]) -> Iterator[None]:
        for number, peer in enumerate(drained(peers)):
            if peer in self._peers and which(peer):
                peer.force_close(reason)
                yield
            elif number % _STEP == 0:
                yield


def _details_of(peer: Peer) -> dict[str, object]:
    """Return the details of a new connection, with RabbitMQ's names."""
    info = peer.info()
    return {
        "user": peer.user_name,
        "protocol": info.protocol,
        "host": info.host,
        "port": info.port,
        "peer_host": info.peer_host,
        "peer_port": info.peer_port,
        "ssl": info.is_tls,
        "auth_mechanism": info.auth_mechanism,
        "client_properties": info.client_properties,
        "connected_at": info.connected_at_ms,
    }


@lru_cache(1024)
def _place_of(vhost: str, user: str) -> tuple[str, str]:
    """Return a virtual host and a user as one object, which many connections have in common."""
    return vhost, user


def _count_out(counts: Counter[str], key: str) -> None:
    """Decrement a count; remove it at zero, so that names do not accumulate."""
    if counts[key] > 1:
        counts[key] -= 1
    else:
        del counts[key]
