"""A broker for each test, and a look at what it holds in memory."""

import gc
from collections.abc import Callable, Iterator

import pytest

from gateway.kernel.message import Message
from gateway.kernel.vhost import VirtualHost
from gateway.testing import MemoryBroker


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


@pytest.fixture
def vhost(broker: MemoryBroker) -> VirtualHost:
    return broker.vhost


@pytest.fixture
def living_messages() -> Iterator[Callable[[], int]]:
    """Counts the messages in memory that were made in the test.

    They are seen by the collector because they refer to other objects. What was there before is out of its sight: with
    all other tests around, looking through that takes a second or two each time.
    """

    def count() -> int:
        gc.collect()
        return sum(type(each) is Message for each in gc.get_objects())

    gc.collect()
    gc.freeze()
    yield count
    gc.unfreeze()
