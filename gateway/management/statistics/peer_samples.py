"""The counts of connections and their channels: those on which nothing was sent or received are not read."""

from collections.abc import Iterator
from typing import Final

from gateway.kernel.broker.connections import ChannelInfo, Connections, Peer
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.statistics.counts import add_increase, channel_counts, counts_by_name, octets, publish_counts
from gateway.management.statistics.histories import Histories
from gateway.management.statistics.history import Counts
from gateway.management.statistics.subjects import Key, channel_key, deliveries_key, key_of, publishes_key

#: Connections that are compared in one step.
_STEP: Final = 64


class SampledPeer:
    """A connection as of its last sample: its bytes, whether they had changed, and the subjects with histories."""

    __slots__ = ("had_news", "keys", "octets")

    def __init__(self) -> None:
        self.octets = (-1, -1)
        self.had_news = True
        self.keys: tuple[Key, ...] = ()


class PeerSamples:
    """Samples connections. Owns the sums of bytes by virtual host, which keep those of closed connections.

    ``_had_news`` are the connections that had changed at the last sample: their rates end with the next one.
    """

    def __init__(self, histories: Histories) -> None:
        self._histories = histories
        self._peers: dict[str, SampledPeer] = {}
        self._had_news: list[Peer] = []
        self._reads_all = True
        self._closed = 0
        self._octets: dict[str, Counts] = {}

    def clear(self) -> None:
        """Read everything anew with the next sample."""
        self._peers = {}
        self._reads_all = True

    def keep_only(self, vhosts: set[str]) -> None:
        """Forget the virtual hosts that do not exist any more."""
        for name in self._octets.keys() - vhosts:
            del self._octets[name]

    def octets_of(self, vhost: VirtualHost) -> Counts:
        """Return the bytes received and sent by connections of a virtual host at the last sample."""
        return dict(self._octets.get(vhost.name) or {"recv_oct": 0, "send_oct": 0})

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
        for number, name in enumerate(self._peers.keys() - names, 1):
            for key in self._peers.pop(name).keys:
                self._histories.forget(key)
            if number % _STEP == 0:
                yield

    def _sampling_peer(self, peer: Peer) -> Iterator[None]:
        """Sample a connection if it has changed now or before."""
        sampled = self._peers.get(peer.name)
        if sampled is None:
            sampled = self._peers[peer.name] = SampledPeer()
        now = peer.octets
        if not sampled.had_news and sampled.octets == now:
            return
        sampled.had_news = sampled.octets != now
        sampled.octets = now
        if sampled.had_news:
            self._had_news.append(peer)
        key = key_of(peer)
        counts = octets(peer)
        sums = self._octets.setdefault(peer.vhost_name, {"recv_oct": 0, "send_oct": 0})
        add_increase(sums, self._histories.latest(key), counts)
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


def _channel_samples(peer: Peer, channel: ChannelInfo) -> Iterator[tuple[Key, Counts]]:
    """Yield the counts of a channel, of its publishes by exchange, and of its deliveries by queue."""
    yield channel_key(peer, channel.number), channel_counts(channel)
    for exchange, tally in list(channel.publishes.items()):
        yield publishes_key(peer, channel.number, exchange), publish_counts(channel, tally)
    for queue, counters in list(channel.deliveries.items()):
        yield deliveries_key(peer, channel.number, queue), counts_by_name(counters)
