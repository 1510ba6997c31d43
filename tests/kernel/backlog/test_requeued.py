"""Requeued messages: each keeps its position, and many are paged out."""

import pytest

from gateway.kernel.backlog.paging import Paging
from gateway.kernel.backlog.requeued import BYTES_EACH, MESSAGE_SIZE, PAGED_AT_ONCE, Requeued
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.queue import Queue
from gateway.testing import MemoryBroker, Recipient, header_of

RESIDENT = 64
COUNT = 1000
SIZE = 10_000


def in_memory(queue: Queue) -> int:
    return sum(1 for _ in queue.ready.resident())


def queue_with_unsettled_messages(is_persistent: bool, size: int = SIZE) -> tuple[MemoryBroker, Queue, Recipient]:
    """Return a queue whose messages are all unsettled with one recipient."""
    broker = MemoryBroker(resident_messages=RESIDENT)
    queue = broker.vhost.declare_queue("q", is_durable=True)
    for number in range(COUNT):
        broker.publish("q", b"%0*d" % (size, number), is_persistent=is_persistent)
    broker.commit()
    recipient = Recipient()
    recipient.consume(queue)
    assert len(recipient.received) == COUNT
    return broker, queue, recipient


@pytest.mark.parametrize("is_persistent", [True, False])
def test_many_requeued_messages_are_paged_out_and_keep_their_positions(is_persistent: bool) -> None:
    broker, queue, recipient = queue_with_unsettled_messages(is_persistent)
    bodies = recipient.bodies
    recipient.leave()
    broker.commit()
    assert len(queue.ready) == COUNT
    assert queue.ready.bytes == COUNT * SIZE
    assert in_memory(queue) * SIZE <= RESIDENT * BYTES_EACH
    assert sorted(queue.ready.positions()) == list(dict.fromkeys(sorted(queue.ready.positions())))
    broker.publish("q", b"youngest", is_persistent=is_persistent)
    again = Recipient()
    again.consume(queue)
    assert again.bodies == [*bodies, b"youngest"]
    assert all(received.redelivered for received in again.received[:-1])
    assert len(queue.ready) == 0


def test_small_requeued_messages_stay_in_memory() -> None:
    broker, queue, recipient = queue_with_unsettled_messages(False, 10)
    recipient.leave()
    broker.commit()
    assert in_memory(queue) == COUNT


def test_requeued_messages_survive_a_crash_and_can_be_purged() -> None:
    broker, _, recipient = queue_with_unsettled_messages(True)
    recipient.leave()
    broker.commit()
    crashed = broker.crashed()
    assert len(crashed.vhost.queue("q").ready) == COUNT
    assert broker.vhost.queue("q").drops.purge() == COUNT
    broker.commit()
    assert len(broker.crashed().vhost.queue("q").ready) == 0


def test_a_paged_message_in_the_middle_can_be_removed() -> None:
    broker, queue, recipient = queue_with_unsettled_messages(True)
    recipient.leave()
    broker.commit()
    position = sorted(queue.ready.positions())[COUNT // 2]
    entry = queue.ready.requeued_at(position)
    assert entry is not None
    assert entry.message.body == b"%0*d" % (SIZE, COUNT // 2)
    assert queue.ready.take_out(entry) is entry
    assert len(queue.ready) == COUNT - 1
    removed = queue.ready.remove({position + 1, position + 2})
    assert [found.message.body for found in removed] == [b"%0*d" % (SIZE, COUNT // 2 + i) for i in (1, 2)]
    assert len(list(queue.ready.positions())) == len(queue.ready) == COUNT - 3


@pytest.mark.volume
@pytest.mark.parametrize("is_reversed", [False, True], ids=["in order", "in reverse order"])
def test_a_requeued_message_pages_out_a_bounded_number_and_the_order_stays(is_reversed: bool) -> None:
    journal = MemoryBroker().kernel.journal
    requeued = Requeued(Paging(journal), RESIDENT, 512)
    most = RESIDENT * BYTES_EACH // MESSAGE_SIZE
    positions = range(1, 2 * most)
    for number, position in enumerate(reversed(positions) if is_reversed else positions):
        before = journal.moved
        requeued.add(QueuedMessage(Message("", "q", header_of(), b""), position, 0, False), number)
        assert journal.moved - before <= PAGED_AT_ONCE
        if number % 256 == 0:  # counting all of them each time would take a minute
            assert sum(1 for _ in requeued) <= most
    assert sum(1 for _ in requeued) <= most
    delivered = []
    while (entry := requeued.peek()) is not None:
        requeued.pop(entry.position)
        delivered.append(entry.position)
    assert delivered == list(positions)
