"""``guest`` may log in only from this machine, whatever the password. The peer addresses are simulated."""

import pytest

from gateway_amqp.tuning import PROTOCOL_HEADER
from tests.protocols.amqp.dialogue import Gateway, Peer, start_ok


@pytest.mark.parametrize("host", ["192.0.2.7", "2001:db8::7"])
def test_guest_is_refused_from_a_remote_address(host: str) -> None:
    peer = Peer(Gateway(), host)
    peer.send(PROTOCOL_HEADER)
    peer.send(start_ok("\0guest\0guest"))
    assert "Login was refused using authentication mechanism PLAIN" in "".join(peer.receive())
    assert ("connection closing", {"reason": "authentication refused"}) in peer.log_lines
    assert peer.user_name == ""


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_guest_may_log_in_from_a_loopback_address(host: str) -> None:
    peer = Peer(Gateway(), host)
    peer.open()
    assert (peer.user_name, peer.vhost_name) == ("guest", "/")


def test_another_user_may_log_in_from_a_remote_address() -> None:
    gateway = Gateway()
    gateway.add_user("orders", "secret", "/")
    peer = Peer(gateway, "192.0.2.7")
    peer.open(user="orders", password="secret")
    assert peer.user_name == "orders"
