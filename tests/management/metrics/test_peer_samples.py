"""Samples of connections: one without channels and traffic has no history of its own, and reads the same."""

from collections.abc import Iterator, Sequence
from random import Random
from types import SimpleNamespace

import pytest

from gateway.kernel.broker.connections import ChannelInfo
from gateway.management.statistics.histories import Histories
from gateway.management.statistics.history import RETENTION_S, History
from gateway.management.statistics.peer_samples import PeerSamples
from gateway.management.statistics.subjects import Key

_INTERVAL_S = 5


class StubPeer:
    """A connection with counters that a test sets."""

    vhost_name = "/"

    def __init__(self, name: str) -> None:
        self.name = name
        self.octets = (60, 4)

    def channels(self) -> Sequence[ChannelInfo]:
        """Return no channels, as MQTT does."""
        return []

    @property
    def key(self) -> Key:
        """The key of its history."""
        return "connection", self.name


class StubConnections:
    """The connections of a test, of which all are active."""

    def __init__(self) -> None:
        self.peers: dict[StubPeer, None] = {}
        self.opened = 0

    def __len__(self) -> int:
        return len(self.peers)

    def __iter__(self) -> Iterator[StubPeer]:
        return iter(tuple(self.peers))

    def __contains__(self, peer: StubPeer) -> bool:
        return peer in self.peers

    def active(self) -> list[StubPeer]:
        """Return all connections."""
        return list(self.peers)

    def open(self, name: str) -> StubPeer:
        """Open a connection."""
        peer = StubPeer(name)
        self.peers[peer] = None
        self.opened += 1
        return peer


class Samples:
    """The samples of connections, and a history of each that has all samples."""

    def __init__(self) -> None:
        self.connections = StubConnections()
        self.histories = Histories()
        self.peers = PeerSamples(self.histories)
        self.complete: dict[str, History] = {}
        self.now_s = 1000.0

    def take(self) -> None:
        """Take the next sample."""
        self.now_s += _INTERVAL_S
        self.histories.begin(self.now_s)
        list(self.peers.sampling(self.connections))  # type: ignore[arg-type]  # stubs
        for peer in self.connections:
            received, sent = peer.octets
            counts = {"recv_oct": received, "send_oct": sent}
            history = self.complete.setdefault(peer.name, History())
            history.record(self.now_s, counts, 1000, RETENTION_S)

    def rest(self) -> None:
        """Do what is done every minute."""
        list(self.histories.clearing(lambda key: True))
        list(self.peers.resting())

    def sums(self) -> dict[str, int]:
        """Return the bytes of the virtual host."""
        return self.peers.octets_of(SimpleNamespace(name="/"))  # type: ignore[arg-type]  # a stub

    def history(self, peer: StubPeer) -> History:
        """Return the history of a connection as a query reads it."""
        found = self.histories.by_key.get(peer.key) or self.peers.history_of(peer.key)
        assert found is not None
        return found

    def shown(self, history: History) -> tuple[list[int], list[int], float]:
        """Return the samples of the last two minutes, and the rate."""
        times_s = [self.now_s - age_s for age_s in range(0, 120, _INTERVAL_S)]
        return history.samples("recv_oct", times_s), history.samples("send_oct", times_s), history.rate("recv_oct")


@pytest.fixture
def samples() -> Samples:
    return Samples()


def test_a_connection_without_traffic_has_no_history(samples: Samples) -> None:
    peer = samples.connections.open("quiet")
    for _ in range(3):
        samples.take()
    assert samples.histories.by_key == {}
    assert samples.shown(samples.history(peer)) == samples.shown(samples.complete["quiet"])
    assert samples.peers.history_of(("connection", "other")) is None
    assert samples.peers.history_of(("queue", "quiet")) is None


def test_the_first_traffic_has_a_rate(samples: Samples) -> None:
    peer = samples.connections.open("quiet")
    samples.take()
    peer.octets = (110, 4)
    samples.take()
    assert samples.history(peer).rate("recv_oct") == 10.0
    samples.take()
    assert samples.history(peer).rate("recv_oct") == 0.0


def test_a_history_of_one_old_sample_is_given_up(samples: Samples) -> None:
    peer = samples.connections.open("busy")
    samples.take()
    peer.octets = (110, 4)
    samples.take()
    samples.rest()
    assert list(samples.histories.by_key) == [peer.key]
    for _ in range(RETENTION_S // _INTERVAL_S + 2):
        samples.take()
    samples.rest()
    assert samples.histories.by_key == {}
    assert samples.shown(samples.history(peer)) == samples.shown(samples.complete["busy"])


@pytest.mark.parametrize("seed", range(30))
def test_samples_and_sums_are_those_of_complete_histories(samples: Samples, seed: int) -> None:
    chance = Random(seed)
    peers = [samples.connections.open(f"peer-{number}") for number in range(4)]
    closed = 0
    for step in range(200):
        for peer in list(peers):
            if chance.random() < 0.2:
                received, sent = peer.octets
                peer.octets = (received + chance.randrange(100), sent + chance.randrange(100))
            if chance.random() < 0.01:
                samples.take()
                closed += peer.octets[0]
                peers.remove(peer)
                del samples.connections.peers[peer]
                peers.append(samples.connections.open(f"peer-{step}-{peer.name}"))
        samples.take()
        if step % 12 == 0:
            samples.rest()
        for peer in peers:
            assert samples.shown(samples.history(peer)) == samples.shown(samples.complete[peer.name])
        assert samples.sums()["recv_oct"] == closed + sum(peer.octets[0] for peer in peers)
    open_keys = {peer.key for peer in peers}
    assert set(samples.histories.by_key) <= open_keys
