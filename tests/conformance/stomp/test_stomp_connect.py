"""CONNECT and CONNECTED: version, authentication, virtual host and heart-beats."""

import re

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.testing import StringTransport

from gateway.kernel.broker.connections import TICKS_PER_S
from gateway_stomp.server import StompServer
from tests.conformance.stomp.frames import connect, frame, send
from tests.conformance.stomp.tables import CLOSED, Row, error, rows, states
from tests.protocols.stomp.dialogue import Gateway

ACCEPTED = "Connecting: CONNECTED answers a CONNECT that is accepted"
REJECTED = "Connecting: ERROR answers one that is rejected, then close"
HIGHEST = "Protocol Negotiation: the highest common version is used"
NOTHING_IN_COMMON = "Protocol Negotiation: no common version: ERROR with versions, then close"


def asking(versions: str) -> bytes:
    return frame("CONNECT", f"accept-version:{versions}", "host:/", "login:guest", "passcode:guest")


CONNECTING: list[Row] = [
    *rows(ACCEPTED, "a valid CONNECT", connect, "CONNECTED 1.0", versions="1.0"),
    *rows(ACCEPTED, "a valid CONNECT", connect, "CONNECTED 1.1", versions="1.1"),
    *rows(ACCEPTED, "a valid CONNECT", connect, "CONNECTED 1.2", versions="1.2"),
    *rows(ACCEPTED, "ends of lines before it", lambda version: b"\n\n" + connect("1.0"), "CONNECTED 1.0"),
    *rows(REJECTED, "another frame comes first", send("/queue/q"), *error("Illegal command")),
    *rows(REJECTED, "another frame with a receipt comes first",
          send("/queue/q", "receipt:r"), *error("Illegal command", "r")),
    *rows(REJECTED, "it comes twice", lambda version: connect("1.1") + connect("1.1"),
          "CONNECTED 1.1", *error("Illegal command"), versions="1.1"),
    *rows(REJECTED, "it comes twice", lambda version: connect("1.2") + connect("1.2"),
          "CONNECTED 1.2", *error("Illegal command"), versions="1.2"),
    *rows(REJECTED, "another protocol", b"GET / HTTP/1.1\r\nHost: here\r\n\r\n\0", *error("Illegal command")),
    *rows("Connecting: STOMP is handled as CONNECT", "STOMP", lambda version: connect(version, verb="STOMP"),
          "CONNECTED 1.1", versions="1.1"),
    *rows("Connecting: STOMP is handled as CONNECT", "STOMP", lambda version: connect(version, verb="STOMP"),
          "CONNECTED 1.2", versions="1.2"),
    *rows("Connecting: an unknown virtual host may be rejected", "nowhere",
          frame("CONNECT", "accept-version:1.1,1.2", "host:nowhere", "login:guest", "passcode:guest"),
          *error("Bad CONNECT")),
    *rows("Connecting: login and passcode authenticate", "a wrong passcode",
          lambda version: connect(version, passcode="wrong"), *error("Bad CONNECT")),
    *rows("Connecting: login and passcode authenticate", "an unknown user",
          lambda version: connect(version, login="unknown"), *error("Bad CONNECT")),
    *rows("Connecting: login and passcode authenticate", "neither",
          frame("CONNECT"), *error("Bad CONNECT")),
    *rows("Connecting: login and passcode authenticate", "no passcode",
          frame("CONNECT", "login:guest"), *error("Bad CONNECT")),
    *rows(HIGHEST, "all of ours", asking("1.0,1.1,1.2"), "CONNECTED 1.2", versions="1.2"),
    *rows(HIGHEST, "in another order", asking("1.2,1.0"), "CONNECTED 1.2", versions="1.2"),
    *rows(HIGHEST, "an unknown later version, too", asking("1.0,1.1,2.0"), "CONNECTED 1.1", versions="1.1"),
    *rows(HIGHEST, "with spaces", asking("1.0, 1.1"), "CONNECTED 1.1", versions="1.1"),
    *rows("Protocol Negotiation: without accept-version it is 1.0", "no accept-version",
          frame("CONNECT", "login:guest", "passcode:guest"), "CONNECTED 1.0"),
    *rows(NOTHING_IN_COMMON, "2.0", asking("2.0"), *error("Version mismatch")),
    *rows(NOTHING_IN_COMMON, "nothing", asking(""), *error("Version mismatch")),
    *rows("Heart-beating: it is two numbers", "one", lambda version: connect(version, "heart-beat:1000"),
          *error("Invalid header")),
    *rows("Heart-beating: it is two numbers", "words", lambda version: connect(version, "heart-beat:a,b"),
          *error("Invalid header")),
    *rows("Heart-beating: it is two numbers", "a negative one", lambda version: connect(version, "heart-beat:-1,0"),
          *error("Invalid header")),
]  # fmt: skip


@pytest.mark.parametrize(("version", "sent", "received"), CONNECTING)
def test_a_connect_is_answered(gateway: Gateway, version: str, sent: bytes, received: list[str]) -> None:
    assert gateway.new_client(version).request(sent) == received


@states("CONNECTED Frame: version is set")
def test_connected_has_the_version(gateway: Gateway, version: str) -> None:
    [connected] = gateway.new_client(version).request_frames(connect(version))
    assert connected.headers["version"] == version
    assert not connected.body


@states("CONNECTED Frame: session is unique")
def test_each_session_has_a_unique_name(gateway: Gateway, version: str) -> None:
    sessions = {gateway.new_client(version).request_frames(connect(version))[0].headers["session"] for _ in range(3)}
    assert len(sessions) == 3


@states("CONNECTED Frame: server is a name and may have a version")
def test_connected_has_the_server_header(gateway: Gateway, version: str) -> None:
    [connected] = gateway.new_client(version).request_frames(connect(version))
    assert re.fullmatch(r"[^/ ]+(/[^ ]+)?( .*)?", connected.headers["server"])


@states(NOTHING_IN_COMMON)
def test_the_error_lists_the_supported_versions(gateway: Gateway, version: str) -> None:
    failure, end = gateway.new_client(version).request_frames(asking("3.0"))
    assert failure.headers["version"] == "1.0,1.1,1.2"
    assert b"1.0,1.1,1.2" in failure.body
    assert str(end) == CLOSED


# ---------------------------------------------------------------- heart-beats

BEATS = [
    # requested, answered
    ("10000,20000", "20000,10000"),
    ("0,0", "0,0"),
    ("5000,0", "0,5000"),
    ("0,5000", "5000,0"),
    ("1,1", "1000,1000"),
    (" 2000 , 3000 ", "3000,2000"),
]


@pytest.mark.parametrize(("asked", "told"), BEATS)
@states("Heart-beating: CONNECTED has the server's intervals")
def test_the_clients_heart_beat_intervals_are_accepted(gateway: Gateway, version: str, asked: str, told: str) -> None:
    [connected] = gateway.new_client(version).request_frames(connect(version, f"heart-beat:{asked}"))
    assert connected.headers["heart-beat"] == told


@states("Heart-beating: none in CONNECT is 0,0")
def test_a_client_that_wants_no_heart_beats_gets_none(gateway: Gateway, version: str) -> None:
    [connected] = gateway.new_client(version).request_frames(connect(version))
    assert connected.headers["heart-beat"] == "0,0"


class Line(StringTransport):
    """The interface of Twisted's transports that a connection uses, over a socket that does not exist."""

    def setTcpNoDelay(self, enabled: bool) -> None:  # noqa: N802 - Twisted's name
        pass


class Peer:
    """A client of the Twisted protocol, with its timers."""

    def __init__(self, gateway: Gateway, version: str, heart_beat: str) -> None:
        self.gateway = gateway
        self.line = Line(peerAddress=IPv4Address("TCP", "127.0.0.1", 50000))
        self.server = StompServer(gateway.settings, gateway.turn)
        self.server.makeConnection(self.line)
        self.request(connect(version, f"heart-beat:{heart_beat}"))
        self.taken()

    @property
    def is_cut_off(self) -> bool:
        return bool(self.line.disconnected)

    def request(self, data: bytes) -> None:
        self.server.dataReceived(data)
        self.gateway.settle()

    def wait(self, seconds: float) -> bytes:
        """Let the timers tick; return the output of that time."""
        for _ in range(round(seconds * TICKS_PER_S)):
            self.server.tick()
            self.gateway.settle()
        return self.taken()

    def taken(self) -> bytes:
        said: bytes = self.line.value()
        self.line.clear()
        return said


@states("Heart-beating: the server sends data in time")
def test_an_idle_server_sends_an_end_of_line_in_every_interval(gateway: Gateway, version: str) -> None:
    peer = Peer(gateway, version, "0,4000")
    for _ in range(3):
        assert set(peer.wait(4)) == {10}
    assert Peer(gateway, version, "0,0").wait(60) == b""


@states("Heart-beating: a silent client may be considered dead")
def test_a_silent_client_is_disconnected_after_a_margin(gateway: Gateway, version: str) -> None:
    peer = Peer(gateway, version, "4000,0")
    peer.wait(5)
    assert not peer.is_cut_off
    peer.wait(4)
    assert peer.is_cut_off


@states("Heart-beating: any data shows that a client is alive")
@pytest.mark.parametrize("data", [b"\n", b"\r\n", send("/queue/q"), b"SEN"], ids=["LF", "CR LF", "SEND", "a part"])
def test_any_data_of_a_client_counts_as_a_heart_beat(gateway: Gateway, version: str, data: bytes) -> None:
    peer = Peer(gateway, version, "4000,0")
    peer.wait(7)
    peer.request(data)
    peer.wait(7)
    assert not peer.is_cut_off
