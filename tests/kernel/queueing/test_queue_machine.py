"""Stateful test of queues: order is kept, and nothing is lost, duplicated or left in the store.

Three queues, two of them durable, get messages directly and by fanout, persistent and transient. The limit of messages
in memory is so low that paging happens all the time, with a memory budget for none, some or all of the rest. A model
of a page computes the expected deliveries.
"""

from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from gateway.kernel.counters import Weight
from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.vhosts.queue_stats import stats_of
from gateway.kernel.vhosts.verdict import Verdict
from gateway.testing import MemoryBroker, Recipient
from tests.effort import examples
from tests.kernel.broker_machine import RecipientMachine

NAMES: Final = ("first", "second", "transient")
DURABLE: Final = ("first", "second")
RECIPIENTS: Final = 3


@dataclass
class Waiting:
    """A message in one queue of the model."""

    order: int
    body: bytes
    is_persistent: bool
    is_redelivered: bool = False


@dataclass
class Modelled:
    """One queue of the model. ``unsettled`` are the messages held by recipients."""

    ready: list[Waiting] = field(default_factory=list)
    unsettled: list[Waiting] = field(default_factory=list)

    def take(self) -> Waiting:
        taken = self.ready.pop(0)
        self.unsettled.append(taken)
        return taken

    def put_back(self, message: Waiting) -> None:
        message.is_redelivered = True
        self.ready.append(message)
        self.ready.sort(key=lambda waiting: waiting.order)

    def survivors(self, *, after_kill: bool) -> "Modelled":
        """Return the queue after a restart. After a kill all messages are flagged as redelivered."""
        everything = sorted(self.ready + self.unsettled, key=lambda waiting: waiting.order)
        return Modelled(
            [
                replace(waiting, is_redelivered=after_kill or waiting.is_redelivered)
                for waiting in everything
                if waiting.is_persistent
            ]
        )


class QueueMachine(RecipientMachine):
    """Random use of three queues by three recipients, checked step by step."""

    @initialize(resident_messages=st.integers(1, 5), reserve=st.sampled_from([0, 2_000, 8_000, 1_000_000]))
    def start(self, resident_messages: int, reserve: int) -> None:
        self.bodies = count()
        self.orders = count()
        self.broker = MemoryBroker(resident_messages=resident_messages, reserve=reserve)
        self.model = {name: Modelled() for name in NAMES}
        self.declare()
        self.replace_recipients()
        self.commit()

    def declare(self) -> None:
        self.queues = {}
        for name in NAMES:
            self.queues[name] = self.broker.vhost.declare_queue(name, is_durable=name in DURABLE)
            self.broker.vhost.bind(self.broker.vhost.exchange("amq.fanout"), self.queues[name], "")

    def replace_recipients(self) -> None:
        """Replace the recipients by new ones without deliveries."""
        self.open_recipients(0, 0, 2)
        self.shared_limits = {self.recipients[2]: 2}

    def commit(self) -> None:
        self.broker.commit()
        self.committed = {name: self.model[name].survivors(after_kill=True) for name in NAMES}

    # Steps

    @rule(name=st.sampled_from([*NAMES, ""]), persistence=st.lists(st.booleans(), min_size=1, max_size=12))
    def publish(self, name: str, persistence: list[bool]) -> None:
        """Publish some messages, to one queue or, without a name, to all."""
        for is_persistent in persistence:
            body = b"message %d" % next(self.bodies)
            for reached in [name] if name else NAMES:
                waiting = Waiting(next(self.orders), body, is_persistent)
                self.model[reached].ready.append(waiting)
            exchange = "" if name else "amq.fanout"
            assert self.broker.publish(name, body, exchange=exchange, is_persistent=is_persistent) is Verdict.TAKEN
            self.check_deliveries()

    @rule(
        index=st.integers(0, RECIPIENTS - 1),
        name=st.sampled_from(NAMES),
        prefetch=st.integers(0, 3),
        settles=st.sampled_from([True, True, False]),
        priority=st.sampled_from([0, 0, 1]),
    )
    def consume(self, index: int, name: str, prefetch: int, settles: bool, priority: int) -> None:
        if len(self.queues[name].consumers) < 4:
            queue = self.queues[name]
            tag = f"consumer {next(self.bodies)}"
            self.recipients[index].consume(queue, tag, prefetch=prefetch, settles=settles, priority=priority)
            self.check_deliveries()

    @rule(index=st.integers(0, RECIPIENTS - 1), name=st.sampled_from(NAMES))
    def get(self, index: int, name: str) -> None:
        expects_one = bool(self.model[name].ready)
        received = self.recipients[index].get(self.queues[name])
        assert (received is not None) == expects_one
        self.check_deliveries()

    @rule(name=st.sampled_from(NAMES))
    def delete_and_declare_again(self, name: str) -> None:
        """Unsettled messages stay with their recipients, but can no longer be requeued."""
        assert self.broker.vhost.delete_queue(self.queues[name]) == len(self.model[name].ready)
        self.model[name] = Modelled()
        self.declare()

    @rule()
    def end_turn(self) -> None:
        """A persistent message is stored once for all durable queues; some of the others are spilled."""
        super().end_turn()
        persistent = {waiting.body for queue, _, waiting in self.held.values() if queue.id and waiting.is_persistent}
        spilled = 0
        for name, model in self.model.items():
            kept = {waiting.body for waiting in model.ready if waiting.is_persistent and name in DURABLE}
            persistent |= kept
            spilled += len(model.ready) - len(kept)
        assert len(persistent) <= len(self.broker.store.held_ids) <= len(persistent) + spilled

    @rule()
    def make_durable(self) -> None:
        self.commit()

    @rule(is_committed=st.booleans())
    def crash_and_recover(self, is_committed: bool) -> None:
        """Only committed persistent messages in durable queues are recovered, in order."""
        if is_committed:
            self.commit()
        self.start_from(self.broker.crashed(), self.committed)

    @rule()
    def stop(self) -> None:
        """After a clean stop only requeued messages are flagged as redelivered."""
        for recipient in self.recipients:
            self.disconnect(recipient)
        self.start_from(self.broker.stopped(), self.model, after_kill=False)
        self.commit()

    def start_from(self, broker: MemoryBroker, found: dict[str, Modelled], *, after_kill: bool = True) -> None:
        self.broker = broker
        self.model = {
            name: found[name].survivors(after_kill=after_kill) if name in DURABLE else Modelled() for name in NAMES
        }
        self.declare()
        self.replace_recipients()

    # Checks against the model

    def check_deliveries(self) -> None:
        """Check the deliveries since the last call: each is the oldest message, with the expected flag."""
        for recipient, received in self.log:
            queue = self.queues[received.queue]
            model = self.model[received.queue]
            assert model.ready, f"{received} came from an empty queue"
            expected = model.take()
            assert received.body == expected.body
            assert received.redelivered == expected.is_redelivered
            if received.tag is None:
                model.unsettled.remove(expected)
            else:
                delivery = next(delivery for delivery in recipient.ledger if delivery.tag == received.tag)
                self.held[recipient, received.tag] = queue, delivery.consumer, expected
        self.log.clear()

    def ready_in_model(self, name: str) -> list[Waiting]:
        return self.model[name].ready

    def clear_model(self, name: str) -> None:
        self.model[name].ready.clear()

    def conclude(self, held: tuple[Recipient, int], outcome: DeliveryOutcome) -> None:
        queue, _, waiting = self.held.pop(held)
        model = self.model[queue.name]
        if queue is self.queues[queue.name]:
            model.unsettled.remove(waiting)
            if outcome is DeliveryOutcome.REQUEUED:
                model.put_back(waiting)

    def holds(self, consumer: Consumer) -> int:
        return sum(holder is consumer for _, holder, _ in self.held.values())

    def shares(self, recipient: Recipient) -> int:
        return sum(each is recipient and holder is not None for (each, _), (_, holder, _) in self.held.items())

    def has_capacity(self, recipient: Recipient, consumer: Consumer) -> bool:
        if not recipient.is_open:
            return False
        limit, shared_limit = consumer.credit.limit, self.shared_limits.get(recipient, 0)
        is_within = not limit or not consumer.needs_settling or self.holds(consumer) < limit
        return is_within and (not shared_limit or self.shares(recipient) < shared_limit)

    # Invariants

    @invariant()
    def counts_match_the_model(self) -> None:
        for name in NAMES:
            assert len(self.queues[name]) == len(self.model[name].ready)
            assert self.queues[name].unsettled == len(self.model[name].unsettled)

    @invariant()
    def stats_match_the_model(self) -> None:
        for name in NAMES:
            stats, model = stats_of(self.queues[name]), self.model[name]
            there = [*model.ready, *model.unsettled]
            persistent = [waiting for waiting in there if waiting.is_persistent and name in DURABLE]
            assert count_and_bytes(stats.ready) == count_and_size_of(model.ready)
            assert count_and_bytes(stats.unsettled) == count_and_size_of(model.unsettled)
            assert count_and_bytes(stats.all) == count_and_size_of(there)
            assert count_and_bytes(stats.persistent) == count_and_size_of(persistent)
            assert count_and_bytes(stats.in_memory + stats.paged_out) == count_and_size_of(there)
            assert min(stats.ready_in_memory.count, stats.paged_out.count) >= 0

    @invariant()
    def credit_is_never_exceeded(self) -> None:
        for recipient in self.recipients:
            assert self.shares(recipient) <= self.shared_limits.get(recipient, len(self.held))
            for consumer in recipient.consumers:
                assert consumer.credit.used == (self.holds(consumer) if consumer.credit.limit else 0)
                assert self.holds(consumer) <= (consumer.credit.limit or len(self.held))

    @invariant()
    def no_consumer_with_capacity_waits_while_messages_are_ready(self) -> None:
        for recipient in self.recipients:
            for consumer in recipient.consumers:
                assert not len(consumer.queue) or not self.has_capacity(recipient, consumer)

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "broker"):
            assert self.broker.store.reopened().highest_ids() == (0, 0)


def count_and_bytes(weight: Weight) -> tuple[int, int]:
    return weight.count, weight.bytes


def count_and_size_of(messages: list[Waiting]) -> tuple[int, int]:
    return len(messages), sum(len(waiting.body) for waiting in messages)


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=examples(100), stateful_step_count=50, deadline=None)
