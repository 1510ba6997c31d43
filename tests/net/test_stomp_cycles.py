"""A lost STOMP connection leaves no reference cycle: its memory is freed at once, not by a later collection."""

from typing import Any

import pytest

from gateway_stomp.server import StompServer
from tests.garbage import garbage_of
from tests.net.far_end import connect_and_lose
from tests.protocols.stomp.dialogue import Gateway, frame
from tests.protocols.stomp.test_stomp_delayed_logins import Slow

CONNECT = frame("CONNECT", {"login": "guest", "passcode": "guest", "accept-version": "1.2", "host": "/"})
SEND = frame("SEND", {"destination": "/queue/t", "receipt": "s"}, bytes(300_000))
SUBSCRIBE = frame("SUBSCRIBE", {"destination": "/queue/t", "id": "0", "ack": "client", "receipt": "u"})
DELIVERED = [CONNECT, SUBSCRIBE, SEND, SEND]
BEGIN = frame("BEGIN", {"transaction": "x"})
ACK = frame("ACK", {"id": "T_0@@session-token-1@@1", "transaction": "x"})
REPLY = {"destination": "/queue/t", "reply-to": "/temp-queue/r"}

LIVES = [
    pytest.param([], id="silent"),
    pytest.param([CONNECT[:30]], id="during the login"),
    pytest.param([CONNECT.replace(b"passcode:guest", b"passcode:wrong")], id="refused"),
    pytest.param([CONNECT.replace(b"host:/", b"host:absent")], id="without a virtual host"),
    pytest.param([CONNECT], id="idle"),
    pytest.param([CONNECT, SEND[:20]], id="in the middle of a head"),
    pytest.param([CONNECT, SEND[:150_000]], id="in the middle of a body"),
    pytest.param([CONNECT, SEND], id="having published"),
    pytest.param(DELIVERED, id="with unsettled deliveries"),
    pytest.param(
        [*DELIVERED, frame("UNSUBSCRIBE", {"id": "0"})], id="with unsettled deliveries of an ended subscription"
    ),
    pytest.param(
        [*DELIVERED, BEGIN, ACK, frame("SEND", {"destination": "/queue/t", "transaction": "x"})], id="in a transaction"
    ),
    pytest.param([CONNECT, frame("SEND", REPLY)], id="waiting for replies"),
    pytest.param([CONNECT, frame("SUBSCRIBE", {"destination": "/topic/a", "id": "0"})], id="with its own queue"),
    pytest.param([CONNECT, frame("SUBSCRIBE", {"destination": "/queue/a/b", "id": "0"})], id="after a refused frame"),
    pytest.param([CONNECT, b"\xff\n\n\0"], id="after a violation"),
    pytest.param([*DELIVERED, frame("DISCONNECT", {"receipt": "r"})], id="after DISCONNECT"),
    pytest.param([*DELIVERED, b"half"], id="with unsettled deliveries and half a frame"),
]


@pytest.mark.parametrize("settles", [True, False], ids=["settled", "not settled"])
@pytest.mark.parametrize("sent", LIVES)
def test_a_lost_connection_leaves_no_cycle(sent: list[bytes], settles: bool) -> None:
    gateway = Gateway()
    connect_and_lose(StompServer, gateway, sent, settles=settles)  # objects that are created once are created now
    assert garbage_of(lambda: connect_and_lose(StompServer, gateway, sent, settles=settles)) == []


class Forgetful(Slow):
    """An authenticator that never answers, and keeps no reference to the caller."""

    def authenticate(self, credentials: Any, answer: Any) -> None:
        """Drop the request."""


def test_a_connection_lost_during_its_authentication_leaves_no_cycle() -> None:
    gateway = Gateway(authenticators=[Forgetful()])
    connect_and_lose(StompServer, gateway, [CONNECT, SEND[:1000]])
    assert garbage_of(lambda: connect_and_lose(StompServer, gateway, [CONNECT, SEND[:1000]])) == []
