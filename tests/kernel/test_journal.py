"""A turn is one step of the store, answers wait for the disk as long as they must, and what waits is bounded.

Rules: R123, R137.
"""

import pytest

from gateway.kernel.journal.changes import Changes, Lsn
from gateway.kernel.journal.journal import BACKLOG_LIMIT
from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.queue import DeliveryOutcome
from gateway.testing import FakeClock, MemoryBroker, Recipient
from gateway.testing.broker import header_of
from gateway_memory import MemoryStore


class CountingStore(MemoryStore):
    """Counts the steps it is given."""

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


def test_a_turn_is_one_step(broker: MemoryBroker, store: CountingStore) -> None:
    """R116: after a crash all of it is there, or none."""
    for _ in range(3):
        broker.publish("q", is_persistent=True)
    broker.vhost.declare_exchange("x", "direct", is_durable=True)
    broker.end_turn()
    assert len(store.steps) == 1


def test_a_turn_in_which_nothing_happened_is_no_step(broker: MemoryBroker, store: CountingStore) -> None:
    broker.publish("q", is_persistent=False)
    broker.end_turn()
    assert store.steps == []


def test_reading_contents_of_earlier_turns_does_not_cut_a_turn_in_two(
    broker: MemoryBroker, store: CountingStore
) -> None:
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


def test_answers_wait_for_their_position_and_come_in_order(broker: MemoryBroker, store: CountingStore) -> None:
    journal, said = broker.kernel.journal, list[str]()
    journal.when_durable(journal.pending_lsn, lambda: said.append("nothing was pending"))
    broker.publish("q", is_persistent=True)
    journal.when_durable(journal.pending_lsn, lambda: said.append("first"))
    broker.end_turn()
    broker.publish("q", is_persistent=True)
    journal.when_durable(journal.pending_lsn, lambda: said.append("second"))
    assert said == ["nothing was pending"]
    store.commit()
    assert said == ["nothing was pending", "first"]
    broker.commit()
    assert said == ["nothing was pending", "first", "second"]


def test_an_answer_may_ask_for_another(broker: MemoryBroker) -> None:
    journal, said = broker.kernel.journal, list[str]()
    broker.publish("q", is_persistent=True)

    def ask() -> None:
        said.append("asked")
        broker.publish("q", is_persistent=True)
        journal.when_durable(journal.pending_lsn, lambda: said.append("answered"))

    journal.when_durable(journal.pending_lsn, ask)
    broker.commit()
    assert said == ["asked"]
    broker.commit()
    assert said == ["asked", "answered"]


def test_publishers_are_held_back_while_too_much_waits_for_the_disk(broker: MemoryBroker, store: CountingStore) -> None:
    """R126: what is buffered is bounded, and the flag does not flutter."""
    journal = broker.kernel.journal
    weighed: list[bool] = []
    journal.on_backlog = lambda: weighed.append(journal.is_backlogged)
    for _ in range(3):
        broker.publish("q", bytes(BACKLOG_LIMIT // 3 + 1), is_persistent=True)
        broker.end_turn()
    assert weighed == [True]
    store.commit()
    assert weighed == [True, False]
    assert not journal.is_backlogged


def test_what_needs_no_store_is_no_backlog(broker: MemoryBroker) -> None:
    recipient = Recipient()
    recipient.consume(broker.vhost.queue("q"))
    broker.publish("q", bytes(BACKLOG_LIMIT + 1), is_persistent=False)
    broker.end_turn()
    assert not broker.kernel.journal.is_backlogged


def test_what_is_published_and_settled_in_one_turn_leaves_nothing(broker: MemoryBroker, store: CountingStore) -> None:
    """R130: its id is forgotten before the store sees it."""
    recipient = Recipient()
    recipient.consume(broker.vhost.queue("q"))
    broker.publish("q", is_persistent=True)
    recipient.settle(1, DeliveryOutcome.ACCEPTED)
    broker.commit()
    assert store.held_ids == frozenset()


def test_time_stands_still_during_a_turn(broker: MemoryBroker) -> None:
    journal, clock = broker.kernel.journal, broker.clock
    before = journal.now_ms
    clock.advance(1.5)
    assert journal.now_ms == before
    broker.vhost.declare_queue("ends the turn", is_durable=True)
    broker.end_turn()
    assert journal.now_ms == before + 1500


# FakeClock itself


def test_a_fake_clock_makes_calls_when_they_are_due_and_not_before() -> None:
    clock, made = FakeClock(), list[tuple[str, float]]()
    clock.call_later(2, lambda: made.append(("second", clock.monotonic_s())))
    clock.call_later(1, lambda: made.append(("first", clock.monotonic_s())))
    cancelled = clock.call_later(1, lambda: made.append(("cancelled", clock.monotonic_s())))
    cancelled.cancel()
    clock.advance(0.999)
    assert made == []
    clock.advance(5)
    assert made == [("first", 1), ("second", 2)]
    assert clock.wall_ms() == 1_700_000_005_999


def test_a_call_may_schedule_another_that_falls_due_at_once() -> None:
    clock, made = FakeClock(), list[float]()

    def tick() -> None:
        made.append(clock.monotonic_s())
        clock.call_later(1, tick)

    clock.call_later(1, tick)
    clock.advance(3)
    assert made == [1, 2, 3]


@pytest.mark.parametrize("is_committed", [False, True], ids=["in this turn", "in the store"])
def test_what_consumers_must_not_see_is_kept_with_the_content(broker: MemoryBroker, is_committed: bool) -> None:
    """R106: it routes the dead letter, if there is one."""
    header = header_of(is_persistent=True)
    header.kept = header.raw + b" "
    message = Message("", "q", header, b"m")
    broker.vhost.publish(broker.vhost.default_exchange, message)
    if is_committed:
        broker.commit()
    (content,) = broker.kernel.journal.contents([message.id])
    assert content is not None
    assert content.header == header.kept
