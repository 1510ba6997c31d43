"""The memory budget shared by all queues: how much each may take, and that all of it is given back."""

from collections.abc import Callable

import pytest

from gateway.kernel.backlog.buffered_runs import room_of
from gateway.kernel.backlog.memory_budget import MemoryBudget
from gateway.kernel.backlog.ready import SEGMENT_LENGTH
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Message, Properties, Value
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.queue import RESIDENT_MESSAGES, Queue
from gateway.testing import MemoryBroker, Recipient
from gateway.testing.broker import header_of
from tests.kernel.buffered_room import buffered_room
from tests.kernel.discarding import discard_these
from tests.kernel.word_selection import WordSelection

#: The room of a message from ``fill``.
ROOM = room_of(QueuedMessage(Message("", "q", header_of(), b"%06d" % 0), 1, 0, False))


def fill(broker: MemoryBroker, count: int, name: str = "q", *, is_persistent: bool = False) -> None:
    for number in range(count):
        broker.publish(name, b"%06d" % number, is_persistent=is_persistent)


def kept(queue: Queue) -> int:
    return sum(1 for row in queue.ready.rows() for _ in row.kept())


def paged_out(queue: Queue) -> int:
    return sum(map(len, queue.ready.paged()))


def positions(queue: Queue) -> list[int]:
    return sorted(queue.ready.positions())


def test_a_request_beyond_the_remaining_budget_is_refused() -> None:
    reserve = MemoryBudget(100)
    assert not reserve.take(51, held=0)
    assert reserve.take(50, held=0)
    assert not reserve.take(1, held=50)
    reserve.give_back(50)
    assert reserve.taken == 0


def test_a_queue_takes_at_most_half_of_the_remaining_budget() -> None:
    reserve = MemoryBudget(1_000)
    held = [0, 0, 0]
    for user in range(3):
        while reserve.take(10, held[user]):
            held[user] += 10
    assert held == [500, 250, 120]


@pytest.mark.volume
@pytest.mark.parametrize("is_persistent", [False, True], ids=["transient", "persistent"])
def test_a_burst_within_the_budget_is_not_paged_out(is_persistent: bool) -> None:
    broker = MemoryBroker(reserve=64 * 2**20)
    queue = broker.vhost.declare_queue("q", is_durable=True)
    fill(broker, 20_000, is_persistent=is_persistent)
    assert paged_out(queue) == 0
    recipient = Recipient()
    recipient.consume(queue, settles=False)
    assert recipient.bodies == [b"%06d" % number for number in range(20_000)]
    assert (queue.disk_reads, queue.disk_writes) == (0, 20_000 if is_persistent else 0)
    assert broker.kernel.reserve.taken == 0


def test_a_short_queue_takes_no_budget() -> None:
    broker = MemoryBroker(reserve=64 * 2**20)
    broker.vhost.declare_queue("q")
    fill(broker, RESIDENT_MESSAGES + SEGMENT_LENGTH - 1)
    assert broker.kernel.reserve.taken == 0


def test_without_a_budget_a_long_queue_is_paged_out() -> None:
    broker = MemoryBroker(resident_messages=10)
    queue = broker.vhost.declare_queue("q")
    fill(broker, 100)
    assert (kept(queue), paged_out(queue)) == (0, 90)


def test_messages_beyond_the_budget_are_paged_out() -> None:
    """R134: the memory of a queue is bounded, and so is the memory of all queues beyond a constant for each."""
    broker = MemoryBroker(resident_messages=10, reserve=200 * ROOM)
    queues = [broker.vhost.declare_queue(name) for name in ("q", "r", "s")]
    for queue in queues:
        fill(broker, 1_000, queue.name)
    assert [kept(queue) for queue in queues] == [100, 50, 20]  # the rest of the last two is less than a segment
    assert all(paged_out(queue) == 990 - kept(queue) for queue in queues)
    assert broker.kernel.reserve.taken <= broker.kernel.reserve.size


def test_large_messages_use_more_of_the_budget() -> None:
    broker = MemoryBroker(resident_messages=10, reserve=200 * ROOM)
    queue = broker.vhost.declare_queue("q")
    for _ in range(100):
        broker.publish("q", bytes(2_000))
    assert kept(queue) == 20


def test_headers_and_routing_keys_count_for_the_budget() -> None:
    broker = MemoryBroker(resident_messages=1, reserve=20_000)
    header = native_header(Properties(message_id="m" * 10_000))
    queues = [broker.vhost.declare_queue(name) for name in "ab"]
    for queue, message in zip(
        queues,
        [Message("", "key", header, b""), Message("", "k" * 10_000, native_header(Properties()), b"")],
        strict=True,
    ):
        queue.offer(message)
        queue.offer(message)
        assert (kept(queue), paged_out(queue)) == (0, 1)


def test_after_a_paged_message_all_later_ones_are_paged_out() -> None:
    """Otherwise messages would be out of order, or paged messages would have to be searched."""
    broker = MemoryBroker(resident_messages=10, reserve=100 * ROOM)
    queue = broker.vhost.declare_queue("q")
    fill(broker, 100)
    assert (kept(queue), paged_out(queue)) == (50, 40)
    for _ in range(60):
        assert queue.take() is not None
    assert broker.kernel.reserve.taken == 0
    fill(broker, 100)
    assert kept(queue) == 0
    while paged_out(queue):
        assert queue.take() is not None
    fill(broker, 20)
    assert kept(queue) > 0


def drain(queue: Queue) -> None:
    while (entry := queue.take()) is not None:
        queue.settle(entry, DeliveryOutcome.ACCEPTED)


def take_and_put_back(queue: Queue) -> None:
    """Requeue all messages; requeued messages are outside the budget."""
    entries = [queue.take() for _ in range(len(queue))]
    for entry in entries:
        assert entry is not None
        queue.settle(entry, DeliveryOutcome.REQUEUED)
    assert queue.ready.length == len(entries)


def drop(queue: Queue) -> None:
    while len(queue):
        queue.drops.discard(queue.ready.popleft(), DeathReason.MAXLEN)


def discard_one_by_one_from_the_end(queue: Queue) -> None:
    for position in reversed(positions(queue)):
        discard_these(queue, {position})


def discard_all_at_once(queue: Queue) -> None:
    discard_these(queue, set(positions(queue)))


def pick_from_the_middle(queue: Queue) -> None:
    entries = list(queue.ready.resident())
    for entry in entries[50:] + entries[:50]:
        assert queue.pick(entry) is entry


def purge(queue: Queue) -> None:
    queue.drops.purge()


@pytest.mark.parametrize("arguments", [{}, {"x-max-priority": 3}], ids=["plain", "priorities"])
@pytest.mark.parametrize(
    "leave",
    [
        drain,
        take_and_put_back,
        drop,
        discard_one_by_one_from_the_end,
        discard_all_at_once,
        pick_from_the_middle,
        purge,
    ],
)
def test_budget_is_given_back_when_messages_are_removed(
    leave: Callable[[Queue], None], arguments: dict[str, Value]
) -> None:
    broker = MemoryBroker(resident_messages=10, reserve=2**20)
    queue = broker.vhost.declare_queue("q", arguments=arguments)
    for number in range(200):
        header = native_header(Properties(priority=number % 4))
        queue.offer(Message("", "q", header, bytes(number)))
    assert kept(queue) > 100
    leave(queue)
    assert kept(queue) == 0
    assert broker.kernel.reserve.taken == 0


def test_budget_of_a_message_removed_from_the_middle_is_given_back_at_once() -> None:
    broker = MemoryBroker(resident_messages=10, reserve=2**20)
    queue = broker.vhost.declare_queue("q")
    fill(broker, 100)
    taken = broker.kernel.reserve.taken
    discard_these(queue, set(positions(queue)[45:48]))
    assert taken - broker.kernel.reserve.taken == 3 * ROOM
    assert broker.kernel.reserve.taken == buffered_room(broker)


def test_a_consumer_with_a_selection_gets_messages_kept_in_the_budget() -> None:
    broker = MemoryBroker(resident_messages=10, reserve=2**20)
    queue = broker.vhost.declare_queue("q")
    for number in range(200):
        broker.publish("q", b"red" if number % 3 == 0 else b"blue")
    recipient = Recipient()
    recipient.consume(queue, selection=WordSelection(b"red"))
    broker.clock.advance(1)
    assert recipient.bodies == [b"red"] * 67
    assert broker.kernel.reserve.taken == buffered_room(broker)


def test_a_message_kept_in_the_budget_expires_on_time() -> None:
    broker = MemoryBroker(resident_messages=10, reserve=2**20)
    queue = broker.vhost.declare_queue("q", arguments={"x-expire-mode": "anywhere"})
    for number in range(100):
        expiration = "1000" if number % 2 else None
        queue.offer(Message("", "q", native_header(Properties(expiration=expiration)), b""))
    taken = broker.kernel.reserve.taken
    broker.advance(1)
    assert len(queue) == 50
    assert broker.kernel.reserve.taken == buffered_room(broker) < taken


@pytest.mark.parametrize("is_persistent", [False, True], ids=["transient", "persistent"])
def test_budget_is_given_back_when_the_queue_is_deleted(is_persistent: bool) -> None:
    broker = MemoryBroker(resident_messages=10, reserve=2**20)
    queue = broker.vhost.declare_queue("q", is_durable=True)
    fill(broker, 100, is_persistent=is_persistent)
    assert broker.kernel.reserve.taken > 0
    broker.vhost.delete_queue(queue)
    assert broker.kernel.reserve.taken == 0
    broker.commit()
    assert broker.store.held_ids == frozenset()


def test_budget_is_given_back_when_the_virtual_host_is_deleted() -> None:
    broker = MemoryBroker(resident_messages=10, reserve=2**20)
    for name in ("q", "r"):
        broker.vhost.declare_queue(name)
        fill(broker, 100, name)
    assert broker.kernel.reserve.taken > 0
    broker.kernel.delete_vhost("/")
    assert broker.kernel.reserve.taken == 0


def test_budget_is_given_back_when_the_owner_of_an_exclusive_queue_disconnects() -> None:
    broker = MemoryBroker(resident_messages=10, reserve=2**20)
    owner = object()
    broker.vhost.declare_queue("q", owner=owner)
    fill(broker, 100)
    assert broker.kernel.reserve.taken > 0
    broker.vhost.queues.release(owner)
    assert broker.kernel.reserve.taken == 0


def test_queues_of_all_virtual_hosts_share_one_budget() -> None:
    broker = MemoryBroker(resident_messages=10, reserve=100 * ROOM)
    others = broker.kernel.declare_vhost("others").declare_queue("q")
    queue = broker.vhost.declare_queue("q")
    for each in (others, queue):
        for _ in range(200):
            each.offer(Message("", "q", header_of(), b"%06d" % 0))
    assert (kept(others), kept(queue)) == (50, 20)


def test_messages_kept_in_the_budget_survive_a_restart() -> None:
    broker = MemoryBroker(resident_messages=10, reserve=2**20)
    broker.vhost.declare_queue("q", is_durable=True)
    fill(broker, 100, is_persistent=True)
    broker.commit()
    restarted = broker.crashed()
    assert restarted.kernel.reserve.taken == 0
    assert len(restarted.vhost.queue("q")) == 100
