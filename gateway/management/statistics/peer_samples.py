"""The counts of connections and their channels: those on which nothing was sent or received are not read."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from gateway.kernel.broker.connections import ChannelInfo, Connections, Peer
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.statistics.counts import add_increase, channel_counts, counts_by_name, octets, publish_counts
from gateway.management.statistics.histories import Histories
from gateway.management.statistics.history import RETENTION_S, Counts, History
from gateway.management.statistics.subjects import Key, channel_key, deliveries_key, key_of, publishes_key

#: Connections that are compared in one step.
_STEP: Final = 64


class StillPeer(NamedTuple):
    """A connection without channels and without traffic since its only sample: most of a fleet are such.

    A history and its keys would take 0.6 KiB of an idle connection.
    """

    at_s: float
    received: int
    sent: int

    @property
    def counts(self) -> Counts:
        """The counts of the sample."""
        return {"recv_oct": self.received, "send_oct": self.sent}


class SampledPeer:
    """A connection as of its last sample: its bytes, whether they had changed, and the subjects with histories."""

    __slots__ = ("had_news", "keys", "octets")

    def __init__(self) -> None:
        self.octets = (-1, -1)
        self.had_news = True
        self.keys: tuple[Key, ...] = ()


class PeerSamples:
    """Samples connections. Owns the sums of bytes by virtual host, which keep those of closed connections.

    A connection is in ``_still`` or in ``_peers``. ``_had_news`` are the connections that had changed at the last
    sample: their rates end with the next one.
    """

    def __init__(self, histories: Histories) -> None:
        self._histories = histories
        self._still: dict[str, StillPeer] = {}
        self._peers: dict[str, SampledPeer] = {}
        self._had_news: list[Peer] = []
        self._reads_all = True
        self._closed = 0
        self._octets: dict[str, Counts] = {}

    def clear(self) -> None:
        """Read everything anew with the next sample."""
        self._still = {}
        self._peers = {}
        self._reads_all = True

    def keep_only(self, vhosts: set[str]) -> None:
        """Forget the virtual hosts that do not exist any more."""
        for name in self._octets.keys() - vhosts:
            del self._octets[name]

    def octets_of(self, vhost: VirtualHost) -> Counts:
        """Return the bytes received and sent by connections of a virtual host at the last sample."""
        return dict(self._octets.get(vhost.name) or {"recv_oct": 0, "send_oct": 0})

    def history_of(self, key: Key) -> History | None:
        """Return a history of the only sample of a connection, if it has just that."""
        still = self._still.get(str(key[1])) if key[0] == "connection" else None
        return None if still is None else _history_of(still)

    def sampling(self, connections: Connections) -> Iterator[None]:
        """Sample the connections that were awake since the last sample, in steps; forget those that are closed."""
        active = connections.active()
        peers = list(connections) if self._reads_all else list(dict.fromkeys((*self._had_news, *active)))
        self._had_news, self._reads_all = [], True  # an error or a reset leaves the rest to the next sample
        for number, peer in enumerate(peers, 1):
            if peer in connections:
                yield from self._sampling_peer(peer)
            if number % _STEP == 0:
                yield
        self._reads_all = False
        closed = connections.opened - len(connections)
        if closed != self._closed:
            self._closed = closed
            yield from self._forgetting_closed(connections)

    def _forgetting_closed(self, connections: Connections) -> Iterator[None]:
        """Forget the connections that are closed, in steps."""
        names = {peer.name for peer in connections}
        yield
        for number, name in enumerate(self._still.keys() - names, 1):
            self._still.pop(name, None)
            if number % (8 * _STEP) == 0:
                yield
        for number, name in enumerate(self._peers.keys() - names, 1):
            for key in self._peers.pop(name).keys:
                self._histories.forget(key)
            if number % _STEP == 0:
                yield

    def resting(self) -> Iterator[None]:
        """Replace histories of connections that have one old sample by that sample, in steps."""
        for number, (name, sampled) in enumerate(list(self._peers.items()), 1):
            key = sampled.keys[0] if len(sampled.keys) == 1 else None
            history = None if key is None else self._histories.by_key.get(key)
            if key is not None and history is not None and len(history) == 1 and self._peers.get(name) is sampled:
                self._still[name] = StillPeer(history.changed_at_s, *sampled.octets)
                self._histories.forget(key)
                del self._peers[name]
            if number % _STEP == 0:
                yield

    def _sampling_peer(self, peer: Peer) -> Iterator[None]:
        """Sample a connection if it has changed now or before."""
        name, now = peer.name, peer.octets
        sampled, still = self._peers.get(name), self._still.get(name)
        if sampled is None:
            if still is not None and now == still[1:]:
                return
            if still is None and not peer.channels():
                self._still[name] = still = StillPeer(self._histories.now_s, *now)
                add_increase(self._sums_of(peer), {}, still.counts)
                return
            sampled = self._begin(peer)
        elif not sampled.had_news and sampled.octets == now:
            return
        sampled.had_news = sampled.octets != now
        sampled.octets = now
        if sampled.had_news:
            self._had_news.append(peer)
        key = key_of(peer)
        counts = octets(peer)
        add_increase(self._sums_of(peer), self._histories.latest(key), counts)
        found = {key}
        self._histories.record(key, counts)
        for channel in peer.channels():
            for key, counts in _channel_samples(peer, channel):
                found.add(key)
                self._histories.record(key, counts)
                yield
        for key in sampled.keys:
            if key not in found:
                self._histories.forget(key)
        sampled.keys = tuple(found)

    def _begin(self, peer: Peer) -> SampledPeer:
        """Begin the histories of a connection, with its only sample so far if it has one."""
        sampled = self._peers[peer.name] = SampledPeer()
        still = self._still.pop(peer.name, None)
        if still is not None:
            key = key_of(peer)
            self._histories.by_key[key] = _history_of(still)
            sampled.keys = (key,)
        return sampled

    def _sums_of(self, peer: Peer) -> Counts:
        """Return the sums of a connection's virtual host, to be added to."""
        return self._octets.setdefault(peer.vhost_name, {"recv_oct": 0, "send_oct": 0})


def _history_of(still: StillPeer) -> History:
    history = History()
    history.record(still.at_s, still.counts, 1, RETENTION_S)
    return history


def _channel_samples(peer: Peer, channel: ChannelInfo) -> Iterator[tuple[Key, Counts]]:
    """Yield the counts of a channel, of its publishes by exchange, and of its deliveries by queue."""
    yield channel_key(peer, channel.number), channel_counts(channel)
    for exchange, tally in list(channel.publishes.items()):
        yield publishes_key(peer, channel.number, exchange), publish_counts(channel, tally)
    for queue, counters in list(channel.deliveries.items()):
        yield deliveries_key(peer, channel.number, queue), counts_by_name(counters)
