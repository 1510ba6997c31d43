"""A queue keeps order, delivers each message to one consumer, and requeues messages in their old places.

Rules: R156.
"""

import pytest

from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Header, Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.feature import QueueFeature
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing import MemoryBroker, Recipient


@pytest.fixture
def queue(vhost: VirtualHost) -> Queue:
    return vhost.declare_queue("q", is_durable=True)


def publish(broker: MemoryBroker, *bodies: bytes, is_persistent: bool = True) -> None:
    for body in bodies:
        broker.publish("q", body, is_persistent=is_persistent)


def test_messages_are_delivered_in_the_order_they_were_published(broker: MemoryBroker, queue: Queue) -> None:
    publish(broker, b"1", b"2", b"3")
    recipient = Recipient()
    recipient.consume(queue)
    publish(broker, b"4")
    assert recipient.bodies == [b"1", b"2", b"3", b"4"]


def test_priority_is_ignored_by_a_queue_without_priorities(broker: MemoryBroker, queue: Queue) -> None:
    """R76."""
    for priority, body in ((0, b"low"), (9, b"high")):
        message = Message("", "q", _prioritised(priority), body)
        broker.vhost.publish(broker.vhost.default_exchange, message)
    recipient = Recipient()
    recipient.consume(queue)
    assert recipient.bodies == [b"low", b"high"]


def test_a_get_returns_one_message_and_adds_no_consumer(broker: MemoryBroker, queue: Queue) -> None:
    """R90."""
    publish(broker, b"1", b"2")
    recipient = Recipient()
    received = recipient.get(queue)
    assert received is not None
    assert (received.body, received.redelivered) == (b"1", False)
    assert (len(queue), queue.unsettled, len(queue.consumers)) == (1, 1, 0)


def test_a_get_from_an_empty_queue_returns_nothing(queue: Queue) -> None:
    """R90."""
    assert Recipient().get(queue) is None


def test_an_automatically_acknowledged_message_is_removed_at_once(broker: MemoryBroker, queue: Queue) -> None:
    """R86."""
    publish(broker, b"waiting")
    recipient = Recipient()
    recipient.consume(queue, settles=False)
    publish(broker, b"direct")
    recipient.leave()
    assert recipient.bodies == [b"waiting", b"direct"]
    assert (len(queue), queue.unsettled) == (0, 0)


def test_a_message_delivered_directly_with_automatic_acknowledgement_is_not_stored(
    broker: MemoryBroker, queue: Queue
) -> None:
    """It can be confirmed at once, because the consumer has it (R119)."""
    broker.commit()
    before = broker.kernel.journal.pending_lsn
    Recipient().consume(queue, settles=False)
    publish(broker, b"direct")
    assert broker.kernel.journal.pending_lsn == before


def test_prefetch_does_not_limit_automatic_acknowledgement(broker: MemoryBroker, queue: Queue) -> None:
    """R86."""
    recipient = Recipient()
    recipient.consume(queue, settles=False, prefetch=1)
    publish(broker, b"1", b"2", b"3")
    assert recipient.bodies == [b"1", b"2", b"3"]


def test_an_accepted_message_is_removed(broker: MemoryBroker, queue: Queue) -> None:
    """R87."""
    publish(broker, b"1")
    recipient = Recipient()
    recipient.consume(queue)
    recipient.settle(1)
    recipient.leave()
    broker.commit()
    assert len(queue) == 0
    assert len(broker.crashed().vhost.queue("q")) == 0


def test_a_rejected_message_is_removed(broker: MemoryBroker, queue: Queue) -> None:
    """R89: there is no dead-letter exchange."""
    publish(broker, b"1")
    recipient = Recipient()
    recipient.consume(queue)
    recipient.settle(1, DeliveryOutcome.REJECTED)
    broker.commit()
    assert len(queue) == 0
    assert broker.store.held_ids == frozenset()


def test_a_requeued_message_goes_to_the_next_consumer_as_redelivered(broker: MemoryBroker, queue: Queue) -> None:
    """R89."""
    first, second = Recipient(), Recipient()
    first.consume(queue)
    second.consume(queue)
    publish(broker, b"1")
    first.settle(1, DeliveryOutcome.REQUEUED)
    assert [(received.body, received.redelivered) for received in second.received] == [(b"1", True)]


def test_a_requeued_message_is_redelivered_to_its_only_consumer(broker: MemoryBroker, queue: Queue) -> None:
    recipient = Recipient()
    recipient.consume(queue, prefetch=1)
    publish(broker, b"1", b"2")
    recipient.settle(1, DeliveryOutcome.REQUEUED)
    assert [(received.body, received.redelivered) for received in recipient.received] == [(b"1", False), (b"1", True)]


@pytest.mark.parametrize("order", [[1, 2, 3], [3, 2, 1], [2, 3, 1]])
def test_messages_requeued_in_any_order_keep_their_old_order(
    broker: MemoryBroker, queue: Queue, order: list[int]
) -> None:
    """R88."""
    publish(broker, b"1", b"2", b"3", b"4")
    recipient = Recipient()
    for _ in range(3):
        recipient.get(queue)
    for tag in order:
        recipient.settle(tag, DeliveryOutcome.REQUEUED)
    successor = Recipient()
    successor.consume(queue)
    assert successor.bodies == [b"1", b"2", b"3", b"4"]
    assert [received.redelivered for received in successor.received] == [True, True, True, False]


def test_messages_of_a_closed_channel_are_requeued_between_those_of_others(broker: MemoryBroker, queue: Queue) -> None:
    """R88, with two consumers and prefetch."""
    lost, remaining = Recipient(), Recipient()
    lost.consume(queue, prefetch=2)
    remaining.consume(queue, prefetch=2)
    publish(broker, b"1", b"2", b"3", b"4", b"5")
    assert (lost.bodies, remaining.bodies) == ([b"1", b"3"], [b"2", b"4"])
    lost.leave()
    remaining.settle(2, up_to=True)
    assert remaining.bodies == [b"2", b"4", b"1", b"3"]
    remaining.settle(3)
    assert remaining.bodies[-1] == b"5"
    assert [received.redelivered for received in remaining.received] == [False, False, True, True, False]


def test_messages_of_a_closed_channel_wait_when_there_is_no_other_consumer(broker: MemoryBroker, queue: Queue) -> None:
    """R88."""
    recipient = Recipient()
    recipient.consume(queue)
    publish(broker, b"1", b"2")
    recipient.leave()
    assert len(queue) == 2


def test_a_cancelled_consumer_keeps_its_unsettled_messages(broker: MemoryBroker, queue: Queue) -> None:
    recipient = Recipient()
    consumer = recipient.consume(queue)
    publish(broker, b"1")
    recipient.cancel(consumer)
    publish(broker, b"2")
    assert (recipient.bodies, len(queue), queue.unsettled) == ([b"1"], 1, 1)
    recipient.settle(1)
    assert queue.unsettled == 0


def test_a_purge_removes_ready_messages_and_keeps_unsettled_ones(broker: MemoryBroker, queue: Queue) -> None:
    publish(broker, b"1", b"2", b"3")
    recipient = Recipient()
    recipient.get(queue)
    assert queue.drops.purge() == 2
    assert (len(queue), queue.unsettled) == (0, 1)
    recipient.settle(1, DeliveryOutcome.REQUEUED)
    assert len(queue) == 1


def test_messages_settled_after_their_queue_was_deleted_are_removed(broker: MemoryBroker, queue: Queue) -> None:
    publish(broker, b"1", b"2", b"3")
    recipient = Recipient()
    recipient.consume(queue)
    broker.vhost.delete_queue(queue)
    for tag, outcome in enumerate(DeliveryOutcome, start=1):
        recipient.settle(tag, outcome)
    broker.commit()
    assert recipient.cancelled_tags == ["consumer-1"]
    assert broker.store.held_ids == frozenset()


def test_unsettled_messages_of_a_deleted_queue_are_not_recovered(broker: MemoryBroker, queue: Queue) -> None:
    publish(broker, b"1")
    Recipient().consume(queue)
    broker.vhost.delete_queue(queue)
    broker.commit()
    restarted = broker.crashed()
    assert len(restarted.vhost.declare_queue("q", is_durable=True)) == 0
    assert restarted.store.held_ids == frozenset()


# Features


class RecordingFeature(QueueFeature):
    """Records the calls for each message, and refuses or drops certain bodies."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, bytes]] = []

    def admit(self, message: Message) -> DeathReason | None:
        self.calls.append(("admit", message.body))
        return DeathReason.MAXLEN if message.body == b"unwelcome" else None

    def enqueued(self, entry: QueuedMessage) -> None:
        self.calls.append(("enqueued", entry.message.body))

    def due(self, entry: QueuedMessage) -> DeathReason | None:
        self.calls.append(("due", entry.message.body))
        return DeathReason.EXPIRED if entry.message.body == b"old" else None

    def dropped(self, message: Message, reason: DeathReason) -> None:
        self.calls.append((reason.value, message.body))


@pytest.fixture
def feature(queue: Queue) -> RecordingFeature:
    feature = RecordingFeature()
    queue.apply((feature,))
    return feature


def test_a_feature_may_refuse_a_message(broker: MemoryBroker, queue: Queue, feature: RecordingFeature) -> None:
    publish(broker, b"unwelcome")
    assert len(queue) == 0
    assert feature.calls == [("admit", b"unwelcome")]


def test_a_feature_may_drop_an_expired_message(broker: MemoryBroker, queue: Queue, feature: RecordingFeature) -> None:
    publish(broker, b"old", b"new")
    feature.calls.clear()
    received = Recipient().get(queue)
    broker.commit()
    assert received is not None
    assert received.body == b"new"
    assert feature.calls == [("due", b"old"), ("expired", b"old"), ("due", b"new")]
    assert len(broker.store.held_ids) == 1


def test_a_feature_is_called_for_rejected_messages_and_not_for_purged_ones(
    broker: MemoryBroker, queue: Queue, feature: RecordingFeature
) -> None:
    """R39, R89."""
    publish(broker, b"rejected", b"purged")
    recipient = Recipient()
    recipient.get(queue)
    feature.calls.clear()
    recipient.settle(1, DeliveryOutcome.REJECTED)
    queue.drops.purge()
    assert feature.calls == [("rejected", b"rejected")]


def test_discarding_the_head_removes_the_oldest_message(
    broker: MemoryBroker, queue: Queue, feature: RecordingFeature
) -> None:
    publish(broker, b"1", b"2")
    feature.calls.clear()
    queue.drops.discard(queue.ready.popleft(), DeathReason.MAXLEN)
    assert feature.calls == [("maxlen", b"1")]
    assert len(queue) == 1


def _prioritised(priority: int) -> Header:
    return native_header(Properties(priority=priority))


# ---- Runs -----------------------------------------------------------------------------------------------------------


def run(count: int, *, is_persistent: bool = True, expiration: str | None = None) -> list[Message]:
    header = native_header(Properties(delivery_mode=2 if is_persistent else 1, expiration=expiration))
    return [Message("", "q", header, b"%d" % number) for number in range(count)]


@pytest.mark.parametrize("is_persistent", [True, False])
@pytest.mark.parametrize("has_open_step", [True, False])
def test_a_run_is_enqueued_as_its_messages_would_be(is_persistent: bool, has_open_step: bool) -> None:
    """The records of the store, the counts and the messages are the same, of a long queue too."""
    found = []
    for is_run in (True, False):
        broker = MemoryBroker()
        queue = broker.vhost.declare_queue("q", is_durable=True, arguments={"x-max-priority": 3})
        if has_open_step:
            broker.kernel.journal.open_step()
        publish(broker, b"first")
        for messages in (run(3000, is_persistent=is_persistent), run(100, is_persistent=is_persistent)):
            if is_run:
                assert queue.offer_run(messages)
            else:
                assert [queue.offer(message) for message in messages] == [None] * len(messages)
        changes = [(type(each), values(each)) for each in broker.kernel.journal._changes]
        counts = (len(queue), queue.counters.publish, queue.disk_writes, queue.ready.bytes)
        recipient = Recipient()
        recipient.consume(queue)
        found.append((changes, counts, recipient.bodies))
    assert found[0] == found[1]
    assert len(found[0][2]) == 3101


def values(change: object) -> dict[str, object]:
    """Return the numbers of a record."""
    names = getattr(type(change), "__slots__", ())
    return {name: value for name in names if isinstance(value := getattr(change, name), int)}


def test_a_run_that_has_a_consumer_a_feature_or_an_expiry_is_offered_one_by_one(
    broker: MemoryBroker, vhost: VirtualHost
) -> None:
    empty = vhost.declare_queue("q", is_durable=True)
    assert not empty.offer_run(run(2))
    publish(broker, b"first")
    assert not empty.offer_run(run(2, expiration="1000"))
    limited = vhost.declare_queue("limited", arguments={"x-max-length": 10})
    assert vhost.publish_to_queue("limited", run(1)[0])
    assert not limited.offer_run(run(2))
    assert (len(empty), len(limited)) == (1, 1)
