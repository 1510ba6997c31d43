"""Fixtures: a broker, its virtual host, and a counter of messages in memory."""

from collections.abc import Callable, Iterator

import pytest

from gateway.kernel.messages.message import Message
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing import MemoryBroker
from tests.garbage import living


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


@pytest.fixture
def vhost(broker: MemoryBroker) -> VirtualHost:
    return broker.vhost


@pytest.fixture
def living_messages() -> Iterator[Callable[[], int]]:
    """Returns the number of messages in memory that were created in the test."""
    with living(Message) as count:
        yield count
