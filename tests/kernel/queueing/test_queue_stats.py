"""Statistics of a queue for listings: sizes, disk traffic, the oldest message, and lack of capacity."""

from datetime import UTC, datetime

import pytest

from gateway.kernel.messages.message import Message, Properties, Value
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.vhosts.queue_stats import stats_of
from gateway.testing import MemoryBroker, Recipient

KINDS: list[dict[str, Value]] = [{}, {"x-max-priority": 3}]


@pytest.fixture(params=KINDS, ids=["plain", "priorities"])
def arguments(request: pytest.FixtureRequest) -> dict[str, Value]:
    arguments: dict[str, Value] = request.param
    return arguments


def short_memory(arguments: dict[str, Value]) -> tuple[MemoryBroker, Queue]:
    broker = MemoryBroker(resident_messages=4)
    return broker, broker.vhost.declare_queue("q", is_durable=True, arguments=arguments)


def test_the_stats_of_an_empty_queue_are_zero(broker: MemoryBroker) -> None:
    stats = stats_of(broker.vhost.declare_queue("q"))
    assert (stats.all.count, stats.all.bytes, stats.persistent.count, stats.head_timestamp_s) == (0, 0, 0, None)


def test_stats_distinguish_ready_unsettled_persistent_and_paged_messages(arguments: dict[str, Value]) -> None:
    broker, queue = short_memory(arguments)
    recipient = Recipient()
    for number in range(30):
        broker.publish("q", b"." * number, is_persistent=number % 3 == 0)
    for _ in range(5):
        recipient.get(queue)
    stats = stats_of(queue)
    assert (stats.ready.count, stats.unsettled.count, stats.all.count) == (25, 5, 30)
    assert (stats.ready.bytes, stats.unsettled.bytes) == (sum(range(5, 30)), sum(range(5)))
    assert (stats.persistent.count, stats.persistent.bytes) == (10, sum(range(0, 30, 3)))
    assert 0 < stats.ready_in_memory.count < 25
    assert stats.in_memory.count == stats.ready_in_memory.count + 5
    assert stats.in_memory.bytes + stats.paged_out.bytes == sum(range(30))


def test_a_settled_message_is_no_longer_counted_as_unsettled(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q", is_durable=True)
    recipient = Recipient()
    for outcome in DeliveryOutcome:
        broker.publish("q", b"four", is_persistent=True)
        received = recipient.get(queue)
        assert received is not None
        assert stats_of(queue).unsettled.bytes == 4
        recipient.settle(received.tag, outcome)
        assert stats_of(queue).unsettled.bytes == 0
    assert stats_of(queue).persistent.count == len(queue) == 1


def test_messages_of_a_transient_queue_are_not_counted_as_persistent(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q")
    broker.publish("q", b"m", is_persistent=True)
    assert stats_of(queue).persistent.count == 0


def test_delayed_messages_are_not_counted(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q", is_durable=True, arguments={"x-delayed-delivery": True})
    broker.publish("q", b"later", headers={"x-delay": 1000}, is_persistent=True)
    assert stats_of(queue).all.count == stats_of(queue).persistent.count == 0
    broker.advance(1)
    assert stats_of(queue).all.count == stats_of(queue).persistent.count == 1


# The oldest message


def publish_with_timestamp(broker: MemoryBroker, second: int | None) -> None:
    timestamp = None if second is None else datetime.fromtimestamp(second, UTC)
    header = native_header(Properties(timestamp=timestamp))
    broker.vhost.publish(broker.vhost.default_exchange, Message("", "q", header, b"m"))


def test_the_stats_have_the_timestamp_of_the_head(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q")
    for second in (1_700_000_000, 5, None):
        publish_with_timestamp(broker, second)
    recipient = Recipient()
    timestamps = []
    while len(queue):
        timestamps.append(stats_of(queue).head_timestamp_s)
        recipient.get(queue)
    assert timestamps == [1_700_000_000, 5, None]
    recipient.settle(0, DeliveryOutcome.REQUEUED, up_to=True)
    assert stats_of(queue).head_timestamp_s == 1_700_000_000, "the requeued message is the head again"


def test_the_timestamp_of_a_paged_head_is_not_read_from_disk() -> None:
    broker, _ = short_memory({})
    header = native_header(Properties(delivery_mode=2, timestamp=datetime.fromtimestamp(7, UTC)))
    broker.vhost.publish(broker.vhost.default_exchange, Message("", "q", header, b"m"))
    broker.commit()
    queue = broker.crashed().vhost.queue("q")
    assert (stats_of(queue).head_timestamp_s, queue.disk_reads) == (None, 0)
    Recipient().get(queue)
    assert queue.disk_reads == 1


# Disk, last use, consumers


def test_writes_and_reads_of_the_store_are_counted(arguments: dict[str, Value]) -> None:
    broker, queue = short_memory(arguments)
    broker.publish("q", b"m", is_persistent=True)
    broker.publish("q", b"m")
    assert (queue.disk_writes, queue.disk_reads) == (1, 0)
    for _ in range(20):
        broker.publish("q", b"m")
    spilled = queue.disk_writes - 1
    assert 0 < spilled <= 20
    recipient = Recipient()
    while recipient.get(queue) is not None:
        pass
    assert spilled <= queue.disk_reads <= spilled + 1, "the persistent message may have been in memory"


def test_the_last_use_of_a_queue_is_recorded(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q")
    recipient = Recipient()
    began_ms = queue.used_at_ms
    used_s = []
    broker.advance(1)
    for use in (
        lambda: recipient.consume(queue),
        lambda: recipient.cancel(recipient.consumers[0]),
        lambda: recipient.get(queue),
        lambda: broker.vhost.declare_queue("q"),
        lambda: broker.publish("q", b"m"),
    ):
        use()
        used_s.append((queue.used_at_ms - began_ms) // 1000)
        broker.advance(1)
    assert used_s == [1, 2, 3, 4, 4]


def test_a_queue_lacks_capacity_while_no_consumer_has_credit_and_free_output(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q")
    broker.publish("q", b"1")
    assert not queue.lacks_capacity, "there is no consumer"
    recipient = Recipient()
    recipient.consume(queue, prefetch=1)
    assert not queue.lacks_capacity, "no message is ready"
    broker.publish("q", b"2")
    assert queue.lacks_capacity
    other = Recipient()
    other.consume(queue)
    broker.publish("q", b"3")
    assert not queue.lacks_capacity
    other.is_open = False
    broker.publish("q", b"4")
    assert queue.lacks_capacity


def test_standby_consumers_do_not_count_as_capacity(broker: MemoryBroker) -> None:
    queue = broker.vhost.declare_queue("q", arguments={"x-single-active-consumer": True})
    active, standby = Recipient(), Recipient()
    active.consume(queue, prefetch=1)
    standby.consume(queue)
    broker.publish("q", b"1")
    broker.publish("q", b"2")
    assert queue.lacks_capacity
