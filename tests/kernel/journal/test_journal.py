"""The journal: a turn is one step of the store, callbacks wait for durability, and the backlog is bounded.

Rules: R123, R137.
"""

import pytest

from gateway.kernel.journal.changes import Changes, Lsn
from gateway.kernel.journal.disk_backlog import BACKLOG_LIMIT
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.testing import FakeClock, MemoryBroker, Recipient
from gateway.testing.broker import header_of
from gateway_memory import MemoryStore


class CountingStore(MemoryStore):
    """Records the steps that it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Changes] = []

    def append(self, changes: Changes) -> Lsn:
        self.steps.append(changes)
        return super().append(changes)


@pytest.fixture
def store() -> CountingStore:
    return CountingStore()


@pytest.fixture
def broker(store: CountingStore) -> MemoryBroker:
    broker = MemoryBroker(store, resident_messages=4)
    broker.vhost.declare_queue("q", is_durable=True)
    broker.commit()
    store.steps.clear()
    return broker


def test_a_turn_is_one_step_of_the_store(broker: MemoryBroker, store: CountingStore) -> None:
    """R116: after a crash all of the turn is there, or none."""
    for _ in range(3):
        broker.publish("q", is_persistent=True)
    broker.vhost.declare_exchange("x", "direct", is_durable=True)
    broker.end_turn()
    assert len(store.steps) == 1


def test_an_empty_turn_is_no_step(broker: MemoryBroker, store: CountingStore) -> None:
    broker.publish("q", is_persistent=False)
    broker.end_turn()
    assert store.steps == []


def test_reading_contents_of_earlier_turns_does_not_split_a_turn(broker: MemoryBroker, store: CountingStore) -> None:
    """R116: a transaction may requeue into a queue whose next messages are paged out."""
    for _ in range(20):
        broker.publish("q", is_persistent=True)
    broker.commit()
    store.steps.clear()
    broker.vhost.declare_queue("other", is_durable=True)
    broker.publish("other", is_persistent=True)
    Recipient().consume(broker.vhost.queue("q"))
    assert store.steps == []
    broker.end_turn()
    assert len(store.steps) == 1


def test_durability_callbacks_run_in_order_once_their_position_is_durable(
    broker: MemoryBroker, store: CountingStore
) -> None:
    journal, answers = broker.kernel.journal, list[str]()
    journal.when_durable(journal.pending_lsn, lambda: answers.append("nothing was pending"))
    broker.publish("q", is_persistent=True)
    journal.when_durable(journal.pending_lsn, lambda: answers.append("first"))
    broker.end_turn()
    broker.publish("q", is_persistent=True)
    journal.when_durable(journal.pending_lsn, lambda: answers.append("second"))
    assert answers == ["nothing was pending"]
    store.commit()
    assert answers == ["nothing was pending", "first"]
    broker.commit()
    assert answers == ["nothing was pending", "first", "second"]


def test_a_durability_callback_may_register_another(broker: MemoryBroker) -> None:
    journal, answers = broker.kernel.journal, list[str]()
    broker.publish("q", is_persistent=True)

    def answer() -> None:
        answers.append("asked")
        broker.publish("q", is_persistent=True)
        journal.when_durable(journal.pending_lsn, lambda: answers.append("answered"))

    journal.when_durable(journal.pending_lsn, answer)
    broker.commit()
    assert answers == ["asked"]
    broker.commit()
    assert answers == ["asked", "answered"]


def test_publishers_are_blocked_while_the_backlog_exceeds_its_limit(broker: MemoryBroker, store: CountingStore) -> None:
    """R126: the buffer is bounded, and the flag has hysteresis."""
    journal = broker.kernel.journal
    backlogged: list[bool] = []
    journal.disk_backlog.on_change = lambda: backlogged.append(journal.disk_backlog.is_large)
    for _ in range(3):
        broker.publish("q", bytes(BACKLOG_LIMIT // 3 + 1), is_persistent=True)
        broker.end_turn()
    assert backlogged == [True]
    store.commit()
    assert backlogged == [True, False]
    assert not journal.disk_backlog.is_large


def test_transient_messages_are_no_backlog(broker: MemoryBroker) -> None:
    recipient = Recipient()
    recipient.consume(broker.vhost.queue("q"))
    broker.publish("q", bytes(BACKLOG_LIMIT + 1), is_persistent=False)
    broker.end_turn()
    assert not broker.kernel.journal.disk_backlog.is_large


def test_a_message_published_and_settled_in_one_turn_is_not_stored(broker: MemoryBroker, store: CountingStore) -> None:
    """R130: its id is reset before the store gets the turn."""
    recipient = Recipient()
    recipient.consume(broker.vhost.queue("q"))
    broker.publish("q", is_persistent=True)
    recipient.settle(1, DeliveryOutcome.ACCEPTED)
    broker.commit()
    assert store.held_ids == frozenset()


def test_the_time_does_not_change_during_a_turn(broker: MemoryBroker) -> None:
    journal, clock = broker.kernel.journal, broker.clock
    before = journal.now_ms
    clock.advance(1.5)
    assert journal.now_ms == before
    broker.vhost.declare_queue("ends the turn", is_durable=True)
    broker.end_turn()
    assert journal.now_ms == before + 1500


# FakeClock itself


def test_a_fake_clock_makes_calls_when_they_are_due() -> None:
    clock, called = FakeClock(), list[tuple[str, float]]()
    clock.call_later(2, lambda: called.append(("second", clock.monotonic_s())))
    clock.call_later(1, lambda: called.append(("first", clock.monotonic_s())))
    cancelled = clock.call_later(1, lambda: called.append(("cancelled", clock.monotonic_s())))
    cancelled.cancel()
    clock.advance(0.999)
    assert called == []
    clock.advance(5)
    assert called == [("first", 1), ("second", 2)]
    assert clock.wall_ms() == 1_700_000_005_999


def test_a_call_may_schedule_another_within_the_same_advance() -> None:
    clock, called = FakeClock(), list[float]()

    def tick() -> None:
        called.append(clock.monotonic_s())
        clock.call_later(1, tick)

    clock.call_later(1, tick)
    clock.advance(3)
    assert called == [1, 2, 3]


@pytest.mark.parametrize("is_committed", [False, True], ids=["in this turn", "in the store"])
def test_the_header_hidden_from_consumers_is_stored_with_the_content(broker: MemoryBroker, is_committed: bool) -> None:
    """R106: it is needed for dead-lettering."""
    header = header_of(is_persistent=True)
    header.stored_raw = header.raw + b" "
    message = Message("", "q", header, b"m")
    broker.vhost.publish(broker.vhost.default_exchange, message)
    if is_committed:
        broker.commit()
    (content,) = broker.kernel.journal.contents([message.id])
    assert content is not None
    assert content.header == header.stored_raw
