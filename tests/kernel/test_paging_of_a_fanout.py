"""Paging work of one message that is routed to many long queues is bounded for each turn."""

from collections.abc import Callable, Iterator

import pytest

from gateway.kernel.backlog.buffered_runs import room_of
from gateway.kernel.backlog.paging import MOVED_FOR_EACH, MOVED_IN_A_TURN
from gateway.kernel.backlog.ready import FEW, SEGMENT_BYTES
from gateway.kernel.budget import LOOK_EVERY
from gateway.kernel.messages.message import Arguments, Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.queue import Queue
from gateway.testing import MemoryBroker
from gateway.testing.broker import header_of

#: Messages of a segment, since so many stay in memory; and queues, with a segment of each more than a turn moves.
SEGMENT = 64
QUEUES = 4 * MOVED_IN_A_TURN // SEGMENT

#: What one message to all queues may move.
MOST = MOVED_IN_A_TURN + MOVED_FOR_EACH * QUEUES + SEGMENT


def fanned_out(reserve: int = 0, arguments: Arguments | None = None, *, is_durable: bool = False) -> MemoryBroker:
    """Return a broker with queues that all get what is published to the exchange ``x``."""
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
    """Publish so many messages to all queues; yield by how much each of them changed a measure."""
    before = measure(broker)
    for _ in range(count):
        broker.publish("", body, exchange="x")
        broker.commit()
        yield measure(broker) - before
        before = measure(broker)


@pytest.mark.parametrize("is_quorum", [False, True], ids=["classic", "quorum"])
def test_tails_that_are_full_together_are_paged_out_by_and_by(is_quorum: bool) -> None:
    broker = fanned_out(arguments={"x-queue-type": "quorum"} if is_quorum else None, is_durable=is_quorum)
    paged_out = list(growth(broker, 6 * SEGMENT, paged))
    assert sum(paged_out) > 3 * SEGMENT * QUEUES, "most of it was paged out"
    assert max(paged_out) <= MOST


def test_large_bodies_are_paged_out_by_and_by() -> None:
    broker = fanned_out()
    body = bytes(SEGMENT_BYTES // 8)
    paged_out = list(growth(broker, 2 * SEGMENT, paged, body))
    assert sum(paged_out) > SEGMENT // 2 * QUEUES
    assert max(paged_out) <= MOST


def test_what_is_kept_is_put_away_by_and_by_too() -> None:
    room = room_of(QueuedMessage(Message("x", "", header_of(), b""), 1, 0, False))
    broker = fanned_out(reserve=20 * SEGMENT * QUEUES * room)
    assert max(growth(broker, 6 * SEGMENT, kept)) <= MOST


def test_what_a_limit_drops_from_all_of_them_comes_back_by_and_by() -> None:
    broker = fanned_out(arguments={"x-max-length": 4 * SEGMENT})
    came_back = list(growth(broker, 10 * SEGMENT, reads))
    assert sum(came_back) > 3 * SEGMENT * QUEUES
    assert max(came_back) <= MOST + FEW * QUEUES


def test_what_a_restart_finds_comes_back_by_and_by_too() -> None:
    broker = fanned_out(arguments={"x-max-length": 4 * SEGMENT}, is_durable=True)
    for _ in range(4 * SEGMENT):
        broker.publish("", b"", exchange="x", is_persistent=True)
    broker.commit()
    came_back = list(growth(broker.crashed(), 2 * SEGMENT, reads))
    assert sum(came_back) > SEGMENT * QUEUES
    assert max(came_back) <= MOST + FEW * QUEUES


def test_paging_uses_up_the_budget_of_the_turn() -> None:
    broker = MemoryBroker(resident_messages=LOOK_EVERY)
    broker.vhost.declare_queue("q")
    work = []
    for _ in range(2 * LOOK_EVERY):
        broker.publish("q")
        work.append(broker.kernel.journal.budget.work)
        broker.kernel.journal.budget.renew()
    assert work[-1] >= LOOK_EVERY
