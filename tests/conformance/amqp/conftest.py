"""A broker with the reference's exchanges and queues, and one peer with channel 1 open."""

import pytest

from tests.conformance.amqp.tables import furnish
from tests.protocols.amqp.dialogue import Gateway, Peer


@pytest.fixture
def gateway() -> Gateway:
    gateway = Gateway()
    furnish(gateway)
    return gateway


@pytest.fixture
def peer(gateway: Gateway) -> Peer:
    return gateway.connect()
