"""``guest`` may come from this machine alone, whatever the password: the connection machine with a peer from afar."""

import pytest

from gateway_amqp.tuning import PROTOCOL_HEADER
from tests.protocols.amqp.dialogue import Gateway, Peer, start_ok


@pytest.mark.parametrize("host", ["192.0.2.7", "2001:db8::7"])
def test_guest_is_refused_from_afar(host: str) -> None:
    peer = Peer(Gateway(), host)
    peer.send(PROTOCOL_HEADER)
    peer.send(start_ok("\0guest\0guest"))
    assert "Login was refused using authentication mechanism PLAIN" in "".join(peer.hear())
    assert ("connection closing", {"reason": "authentication refused"}) in peer.log_lines
    assert peer.user_name == ""


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_guest_may_come_from_here(host: str) -> None:
    peer = Peer(Gateway(), host)
    peer.open()
    assert (peer.user_name, peer.vhost_name) == ("guest", "/")


def test_another_user_may_come_from_afar() -> None:
    gateway = Gateway()
    gateway.add_user("orders", "secret", "/")
    peer = Peer(gateway, "192.0.2.7")
    peer.open(user="orders", password="secret")
    assert peer.user_name == "orders"
