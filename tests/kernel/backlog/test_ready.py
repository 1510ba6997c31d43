"""Ready messages: a long queue keeps few in memory, and paging does not change the order.

Rules: R136.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from gateway.kernel.backlog.ready import PAGED_IN, RESIDENT_BYTES, SEGMENT_BYTES, SEGMENT_LENGTH
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.queue import RESIDENT_MESSAGES, Queue
from gateway.testing import MemoryBroker, Recipient


def drained(broker: MemoryBroker) -> list[bytes]:
    recipient = Recipient()
    recipient.consume(broker.vhost.queue("q"), settles=False)
    return recipient.bodies


def numbered(count: int) -> list[bytes]:
    return [b"%06d" % number for number in range(count)]


def fill(broker: MemoryBroker, bodies: list[bytes], persistent_every: int = 2) -> None:
    for index, body in enumerate(bodies):
        broker.publish("q", body, is_persistent=persistent_every > 0 and index % persistent_every == 0)


@pytest.fixture(params=[1, 2, 3, 10, 64], ids=lambda count: f"{count} resident")
def resident(request: pytest.FixtureRequest) -> int:
    count: int = request.param
    return count


@pytest.fixture(params=[0, 20_000, 2**20], ids=["no budget", "small budget", "large budget"])
def small(resident: int, request: pytest.FixtureRequest) -> Iterator[MemoryBroker]:
    broker = MemoryBroker(resident_messages=resident, reserve=request.param)
    broker.vhost.declare_queue("q", is_durable=True)
    yield broker
    broker.vhost.queue("q").drops.purge()
    broker.commit()
    assert broker.store.held_ids == frozenset()
    assert broker.kernel.reserve.taken == 0


def test_order_is_the_same_whatever_is_paged_out(small: MemoryBroker) -> None:
    """R135."""
    bodies = numbered(200)
    fill(small, bodies)
    assert drained(small) == bodies


def test_interleaved_publishes_and_gets_keep_the_order(small: MemoryBroker) -> None:
    queue, recipient = small.vhost.queue("q"), Recipient()
    bodies = numbered(300)
    for start in range(0, 300, 30):
        fill(small, bodies[start : start + 30])
        for _ in range(20):
            recipient.get(queue)
    while recipient.get(queue) is not None:
        pass
    assert recipient.bodies == bodies
    recipient.settle(0, up_to=True)


def test_requeued_messages_come_before_paged_ones(small: MemoryBroker) -> None:
    queue, recipient = small.vhost.queue("q"), Recipient()
    bodies = numbered(100)
    fill(small, bodies)
    for _ in range(40):
        recipient.get(queue)
    for tag in (40, 7, 23, 1):
        recipient.settle(tag, DeliveryOutcome.REQUEUED)
    assert drained(small) == [bodies[0], bodies[6], bodies[22], *bodies[39:]]
    recipient.settle(0, up_to=True)


def test_a_purge_removes_paged_messages_and_their_contents(small: MemoryBroker) -> None:
    """R130. The fixture checks the store afterwards."""
    fill(small, numbered(100))
    assert small.vhost.queue("q").drops.purge() == 100
    fill(small, [b"next"])
    assert drained(small) == [b"next"]


def test_a_paged_message_keeps_its_header_and_routing_key(small: MemoryBroker) -> None:
    for number in range(100):
        small.publish("q", b"body", is_persistent=number % 2 == 0, headers={"number": number})
    recipient = Recipient()
    recipient.consume(small.vhost.queue("q"), settles=False)
    messages = [received.message for received in recipient.received]
    assert [message.headers["number"] for message in messages] == list(range(100))
    assert [message.header.is_persistent for message in messages] == [number % 2 == 0 for number in range(100)]
    assert {(message.exchange, message.routing_key) for message in messages} == {("", "q")}


def test_spilled_messages_are_lost_on_a_restart(small: MemoryBroker) -> None:
    """R124, R125."""
    bodies = numbered(100)
    fill(small, bodies)
    small.commit()
    assert drained(small.crashed()) == bodies[::2]


def test_new_messages_follow_a_recovered_backlog(small: MemoryBroker) -> None:
    bodies = numbered(150)
    fill(small, bodies[:100], persistent_every=1)
    small.commit()
    restarted = small.crashed()
    fill(restarted, bodies[100:])
    assert drained(restarted) == bodies


@pytest.mark.volume
@pytest.mark.parametrize("persistent_every", [0, 1, 2], ids=["transient", "persistent", "mixed"])
def test_a_queue_of_fifty_thousand_messages_keeps_a_bounded_number_in_memory(
    persistent_every: int, living_messages: Callable[[], int]
) -> None:
    """R134: a message in memory takes half a kilobyte, a paged one 33 bytes."""
    broker = MemoryBroker()
    queue = broker.vhost.declare_queue("q", is_durable=True)
    fill(broker, numbered(50_000), persistent_every)
    broker.commit()
    assert len(queue) == 50_000
    assert living_messages() <= RESIDENT_MESSAGES + SEGMENT_LENGTH


@pytest.mark.volume
def test_draining_a_long_queue_keeps_a_bounded_number_in_memory(living_messages: Callable[[], int]) -> None:
    """R134."""
    broker = MemoryBroker()
    queue = broker.vhost.declare_queue("q")
    fill(broker, numbered(20_000))
    broker.commit()
    most = 0
    for number in range(20_000):
        entry = queue.take()
        assert entry is not None
        queue.settle(entry, DeliveryOutcome.ACCEPTED)
        if number % 1000 == 0:
            most = max(most, living_messages())
    assert most <= RESIDENT_MESSAGES + SEGMENT_LENGTH


# ---- Large messages --------------------------------------------------------------------------------------------------


def test_a_message_pages_in_a_small_part_of_a_segment() -> None:
    broker, count = MemoryBroker(), RESIDENT_MESSAGES + 4 * SEGMENT_LENGTH
    queue = broker.vhost.declare_queue("q")
    assert isinstance(queue, Queue)
    fill(broker, numbered(count), persistent_every=0)
    bodies, reads = [], [queue.disk_reads]
    while (entry := queue.take()) is not None:
        bodies.append(entry.message.body)
        reads.append(queue.disk_reads)
    assert bodies == numbered(count)
    assert max(after - before for before, after in pairwise(reads)) == PAGED_IN


@pytest.mark.parametrize("persistent_every", [0, 1, 2])
def test_a_queue_of_large_messages_keeps_few_of_them_in_memory(persistent_every: int) -> None:
    broker = MemoryBroker()
    queue = broker.vhost.declare_queue("q", is_durable=True)
    bodies = [b"%06d" % number + bytes(2**20) for number in range(60)]
    fill(broker, bodies, persistent_every)
    in_memory = sum(len(entry.message.body) for entry in queue.ready.resident())
    assert in_memory < RESIDENT_BYTES + SEGMENT_BYTES + 2 * 2**20
    assert len(queue) == 60
    assert drained(broker) == bodies


def test_large_messages_are_recovered_in_small_segments() -> None:
    broker = MemoryBroker()
    broker.vhost.declare_queue("q", is_durable=True)
    bodies = [b"%06d" % number + bytes(2**20) for number in range(40)]
    fill(broker, bodies, 1)
    broker.commit()
    again = broker.crashed()
    assert max(sum(segment.body_sizes) for segment in again.vhost.queue("q").ready.paged()) < SEGMENT_BYTES + 2 * 2**20
    assert drained(again) == bodies
