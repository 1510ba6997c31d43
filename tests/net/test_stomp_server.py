"""The STOMP server around its machine: heart-beats in ticks, time limits, and listings."""

import pytest
from twisted.internet.address import IPv4Address

from gateway.kernel.broker.connections import TICKS_PER_S
from gateway_stomp.server import StompServer
from tests.net.far_end import FarEnd
from tests.protocols.stomp.dialogue import Gateway, frame

#: Its doubles derive from compiled classes.
pytestmark = pytest.mark.source


class Peer(StompServer):
    """A server whose transport records its output."""

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway.settings, gateway.turn)
        self.gateway = gateway
        self.far_end = FarEnd(peerAddress=IPv4Address("TCP", "127.0.0.1", 50_000))
        self.makeConnection(self.far_end)

    def receive(self, data: bytes) -> None:
        self.dataReceived(data)
        self.gateway.settle()

    def pass_ticks(self, seconds: float) -> None:
        for _ in range(int(seconds * TICKS_PER_S)):
            self.tick()

    def output(self) -> bytes:
        output = self.far_end.value()
        self.far_end.clear()
        return output


def opened(heart_beat: str = "0,0", gateway: Gateway | None = None) -> Peer:
    peer = Peer(gateway or Gateway())
    told = {"login": "guest", "passcode": "guest", "accept-version": "1.1,1.2", "heart-beat": heart_beat}
    peer.receive(frame("CONNECT", {**told, "client-id": "robot"}))
    assert peer.output().startswith(b"CONNECTED\n")
    peer.tick()
    return peer


def test_a_heart_beat_is_sent_before_its_interval_is_over() -> None:
    peer = opened("0,4000")
    peer.pass_ticks(1.5)
    assert peer.output() == b""
    peer.pass_ticks(0.5)
    assert peer.output() == b"\n"
    peer.pass_ticks(2)
    assert peer.output() == b"\n"


def test_other_frames_count_as_heart_beats() -> None:
    peer = opened("0,4000")
    peer.pass_ticks(1.5)
    peer.receive(frame("BEGIN", {"transaction": "t", "receipt": "r"}))
    assert b"RECEIPT" in peer.output()
    peer.pass_ticks(1.5)
    assert peer.output() == b""


def test_a_client_that_wants_no_heart_beats_gets_none() -> None:
    peer = opened()
    peer.pass_ticks(100)
    assert peer.output() == b""
    assert not peer.far_end.aborted


def test_a_client_that_misses_its_heart_beats_is_disconnected() -> None:
    peer = opened("2000,0")
    peer.pass_ticks(4)
    assert not peer.far_end.aborted
    peer.pass_ticks(0.5)
    assert peer.far_end.aborted


def test_a_newline_is_a_heart_beat() -> None:
    peer = opened("2000,0")
    for _ in range(10):
        peer.pass_ticks(3)
        peer.receive(b"\n")
    assert not peer.far_end.aborted


def test_a_client_that_does_not_log_in_in_time_is_disconnected() -> None:
    peer = Peer(Gateway(login_timeout_s=3))
    peer.pass_ticks(2.5)
    assert not peer.far_end.aborted
    peer.pass_ticks(0.5)
    assert peer.far_end.aborted


def test_a_listing_shows_the_connection() -> None:
    gateway = Gateway()
    peer = opened("5000,7000", gateway)
    info = peer.info()
    assert (info.protocol, info.state, info.timeout_s) == ("STOMP 1.2", "running", 5)
    assert info.auth_mechanism == "PLAIN"
    told = {"product": "STOMP client", "session": "session-token-1", "client_id": "robot"}
    assert info.client_properties == told
    peer.receive(frame("SUBSCRIBE", {"id": "0", "destination": "/queue/q", "ack": "client"}))
    gateway.publish("", "q")
    (channel,) = peer.channels()
    assert (channel.number, channel.unacknowledged, len(channel.consumers)) == (1, 1, 1)
    assert (peer.vhost_name, peer.user_name, peer.channel_count) == ("/", "guest", 0)


def test_a_connection_that_is_not_open_has_no_version() -> None:
    info = Peer(Gateway()).info()
    assert (info.protocol, info.state) == ("STOMP", "entering")
