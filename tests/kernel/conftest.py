"""A broker for each test."""

import pytest

from gateway.kernel.vhost import VirtualHost
from gateway.testing import MemoryBroker


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


@pytest.fixture
def vhost(broker: MemoryBroker) -> VirtualHost:
    return broker.vhost
