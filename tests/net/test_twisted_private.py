"""The installed Twisted has the private names that the broker relies on."""

from contextlib import closing
from socket import socketpair

import pytest
from twisted.internet import epollreactor, tcp

from gateway.net.twisted_private import REACTOR_NAMES, SERVER_NAMES, TRANSPORT_NAMES


@pytest.fixture(scope="module")
def reactor() -> epollreactor.EPollReactor:
    return epollreactor.EPollReactor()  # type: ignore[no-untyped-call]  # Twisted's


@pytest.mark.parametrize("name", REACTOR_NAMES)
def test_the_reactor_has_the_private_names_in_use(name: str, reactor: epollreactor.EPollReactor) -> None:
    assert hasattr(reactor, name), f"Twisted renamed {name}: gateway/net/twisted_private.py has to follow"


@pytest.mark.parametrize("name", TRANSPORT_NAMES + SERVER_NAMES)
def test_a_transport_has_the_private_names_in_use(name: str, reactor: epollreactor.EPollReactor) -> None:
    one, other = socketpair()
    with closing(one), closing(other):
        transport = tcp.Connection(one, None, reactor)  # type: ignore[no-untyped-call]  # Twisted's
        assert hasattr(transport, name), f"Twisted renamed {name}: gateway/net/twisted_private.py has to follow"
