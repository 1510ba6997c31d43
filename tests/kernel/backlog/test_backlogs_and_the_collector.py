"""The garbage collector visits no container of waiting messages, however many a queue has."""

import gc
from collections import deque

import pytest

from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.queue import Queue
from gateway.testing import MemoryBroker, Recipient


def visited() -> list[int]:
    """Return the lengths of containers of messages that the collector visits."""
    containers = [each for each in gc.get_objects() if isinstance(each, (list, deque)) and each]
    return [len(each) for each in containers if isinstance(each[0], QueuedMessage)]


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker(reserve=2**20, resident_messages=200)


@pytest.fixture(params=[{}, {"x-max-priority": 3}, {"x-queue-type": "quorum"}])
def queue(broker: MemoryBroker, request: pytest.FixtureRequest) -> Queue:
    """A queue with messages in its head, kept within the budget, paged to the store, and in its tail."""
    is_durable = "x-queue-type" in request.param
    queue = broker.vhost.declare_queue("q", is_durable=is_durable, arguments=request.param)
    for _ in range(2990):
        broker.publish("q", bytes(500))
    assert isinstance(queue, Queue)
    assert list(queue.ready.paged())
    return queue


def test_messages_that_wait_are_not_visited(queue: Queue) -> None:
    assert len(queue) == 2990
    assert visited() == []


def test_messages_that_come_back_into_memory_are_not_visited(broker: MemoryBroker, queue: Queue) -> None:
    for _ in range(2500):
        entry = queue.take()
        assert entry is not None
        queue.consumed(entry)
        broker.publish("q", bytes(500))
    assert visited() == []


def test_messages_around_removed_ones_are_not_visited(queue: Queue) -> None:
    removed = queue.ready.remove(set(list(queue.ready.positions())[::3]))
    assert len(removed) == 997
    removed.clear()
    assert visited() == []


def test_messages_of_a_purged_queue_are_not_visited_while_they_are_removed(broker: MemoryBroker, queue: Queue) -> None:
    entries, segments = queue.ready.clear()
    assert len(entries) + sum(map(len, segments)) == 2990
    assert visited() == []


def test_a_consumer_still_gets_all_messages(broker: MemoryBroker, queue: Queue) -> None:
    recipient = Recipient()
    recipient.consume(queue)
    broker.commit()
    assert len(recipient.bodies) == 2990
