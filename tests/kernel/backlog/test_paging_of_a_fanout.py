"""Paging work of one message that is routed to many long queues is bounded for each turn."""

from collections.abc import Callable, Iterator

import pytest

from gateway.kernel.backlog.buffered_runs import room_of
from gateway.kernel.backlog.paging import MOVED_FOR_EACH, MOVED_IN_A_TURN, PAGED_OUT_IN_A_TURN
from gateway.kernel.backlog.ready import FEW, SEGMENT_BYTES
from gateway.kernel.budget import WORK_PER_CLOCK_READING
from gateway.kernel.messages.message import Arguments, Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.queue import Queue
from gateway.testing import MemoryBroker
from gateway.testing.broker import header_of

#: The messages of a segment (set by the resident messages), and the queues: a segment of each exceeds a turn's limit.
SEGMENT = 64
QUEUES = 4 * MOVED_IN_A_TURN // SEGMENT

#: The number of messages that one message to all queues may page out, and that it may move in all.
MOST_OUT = PAGED_OUT_IN_A_TURN + QUEUES + 2 * SEGMENT
MOST = MOVED_IN_A_TURN + MOVED_FOR_EACH * QUEUES + SEGMENT


def broker_with_fanout(
    reserve: int = 0, arguments: Arguments | None = None, *, is_durable: bool = False
) -> MemoryBroker:
    """Return a broker with queues that are all bound to the fanout exchange ``x``."""
    broker = MemoryBroker(resident_messages=SEGMENT, reserve=reserve)
    exchange = broker.vhost.declare_exchange("x", "fanout", is_durable=is_durable)
    for number in range(QUEUES):
        queue = broker.vhost.declare_queue(f"q{number}", is_durable=is_durable, arguments=arguments)
        broker.vhost.bind(exchange, queue, "")
    return broker


def queues_of(broker: MemoryBroker) -> list[Queue]:
    return list(broker.vhost.queue_by_name.values())


def kept(broker: MemoryBroker) -> int:
    return sum(1 for queue in queues_of(broker) for row in queue.ready.rows() for _ in row.kept())


def paged(broker: MemoryBroker) -> int:
    return sum(len(segment) for queue in queues_of(broker) for segment in queue.ready.paged())


def reads(broker: MemoryBroker) -> int:
    return sum(queue.disk_reads for queue in queues_of(broker))


def growth(
    broker: MemoryBroker, count: int, measure: Callable[[MemoryBroker], int], body: bytes = b""
) -> Iterator[int]:
    """Publish ``count`` messages to all queues; yield the change of the measure after each."""
    before = measure(broker)
    for _ in range(count):
        broker.publish("", body, exchange="x")
        broker.commit()
        yield measure(broker) - before
        before = measure(broker)


@pytest.mark.parametrize("is_quorum", [False, True], ids=["classic", "quorum"])
def test_full_tails_of_many_queues_are_paged_out_gradually(is_quorum: bool) -> None:
    broker = broker_with_fanout(arguments={"x-queue-type": "quorum"} if is_quorum else None, is_durable=is_quorum)
    paged_out = list(growth(broker, 6 * SEGMENT, paged))
    assert sum(paged_out) > 3 * SEGMENT * QUEUES, "most messages were paged out"
    assert max(paged_out) <= MOST_OUT


def test_large_bodies_are_paged_out_gradually() -> None:
    broker = broker_with_fanout()
    body = bytes(SEGMENT_BYTES // 8)
    paged_out = list(growth(broker, 2 * SEGMENT, paged, body))
    assert sum(paged_out) > SEGMENT // 2 * QUEUES
    assert max(paged_out) <= MOST_OUT


@pytest.mark.volume
def test_messages_within_the_memory_budget_are_moved_gradually() -> None:
    room = room_of(QueuedMessage(Message("x", "", header_of(), b""), 1, 0, False))
    broker = broker_with_fanout(reserve=20 * SEGMENT * QUEUES * room)
    assert max(growth(broker, 6 * SEGMENT, kept)) <= MOST


@pytest.mark.volume
def test_messages_dropped_by_a_length_limit_are_paged_in_gradually() -> None:
    broker = broker_with_fanout(arguments={"x-max-length": 4 * SEGMENT})
    paged_in = list(growth(broker, 10 * SEGMENT, reads))
    assert sum(paged_in) > 3 * SEGMENT * QUEUES
    assert max(paged_in) <= MOST + FEW * QUEUES


@pytest.mark.volume
def test_recovered_messages_are_paged_in_gradually() -> None:
    broker = broker_with_fanout(arguments={"x-max-length": 4 * SEGMENT}, is_durable=True)
    for _ in range(4 * SEGMENT):
        broker.publish("", b"", exchange="x", is_persistent=True)
    broker.commit()
    paged_in = list(growth(broker.crashed(), 2 * SEGMENT, reads))
    assert sum(paged_in) > SEGMENT * QUEUES
    assert max(paged_in) <= MOST + FEW * QUEUES


def test_paging_uses_up_the_budget_of_the_turn() -> None:
    broker = MemoryBroker(resident_messages=WORK_PER_CLOCK_READING)
    broker.vhost.declare_queue("q")
    work = []
    for _ in range(2 * WORK_PER_CLOCK_READING):
        broker.publish("q")
        work.append(broker.kernel.journal.budget.work)
        broker.kernel.journal.budget.renew()
    assert work[-1] >= WORK_PER_CLOCK_READING


def test_the_publisher_waits_until_the_deferred_page_outs_are_done() -> None:
    """Each queue keeps less than two segments in memory beyond its head, however fast messages arrive."""
    broker = broker_with_fanout()
    budget = broker.kernel.journal.budget
    waits = 0
    for _ in range(6 * SEGMENT):
        broker.publish("", b"", exchange="x")
        work = budget.take_pending()
        broker.commit()
        if work is not None:
            waits += 1
            broker.clock.advance(0)
            assert work.is_done
            broker.commit()
    assert 0 < waits < 6 * SEGMENT // 2
    assert (
        max(sum(1 for _ in row.resident()) for queue in queues_of(broker) for row in queue.ready.rows()) < 3 * SEGMENT
    )


def test_a_deleted_queue_pages_out_nothing_later() -> None:
    broker = broker_with_fanout()
    while not len(broker.kernel.journal.deferred):
        broker.publish("", b"", exchange="x")
        broker.commit()
    for queue in queues_of(broker):
        queue.drops.purge()
    before = paged(broker)
    broker.clock.advance(1)
    assert len(broker.kernel.journal.deferred) == 0
    assert paged(broker) <= before
