"""A broker for each test, and a look at what it holds in memory."""

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
    """Counts the messages in memory that were made in the test."""
    with living(Message) as count:
        yield count
