"""Stateful test of a priority queue against a model: publish, get, requeue, remove and restart, with paging."""

from dataclasses import dataclass
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.queue import Queue
from gateway.testing import MemoryBroker
from tests.effort import examples
from tests.kernel.broker_machine import BrokerMachine


@dataclass(frozen=True, order=True)
class Waiting:
    """A message of the model; sorted in the order of delivery."""

    rank: int
    number: int
    size: int
    is_persistent: bool


class PriorityMachine(BrokerMachine):
    """A durable queue and its model: ready and unsettled messages."""

    @initialize(
        highest=st.sampled_from([1, 2, 9, 255]),
        resident=st.sampled_from([1, 3, 64, 2048]),
        reserve=st.sampled_from([0, 4_000, 30_000, 1_000_000]),
    )
    def start(self, highest: int, resident: int, reserve: int) -> None:
        self.highest = highest
        self.broker = MemoryBroker(resident_messages=resident, reserve=reserve)
        self.queue: Queue = self.broker.vhost.declare_queue("q", is_durable=True, arguments={"x-max-priority": highest})
        self.ready: list[Waiting] = []
        self.out: list[tuple[QueuedMessage, Waiting]] = []
        self.number = 0

    @rule(
        priorities=st.lists(st.integers(0, 255), min_size=1, max_size=40),
        is_persistent=st.booleans(),
        size=st.integers(8, 20),
    )
    def publish(self, priorities: list[int], is_persistent: bool, size: int) -> None:
        for priority in priorities:
            self.number += 1
            header = native_header(Properties(delivery_mode=2 if is_persistent else 1, priority=priority))
            self.queue.offer(Message("", "q", header, b"%0*d" % (size, self.number)))
            self.ready.append(Waiting(-min(priority, self.highest), self.number, size, is_persistent))
        self.ready.sort()

    @rule(count=st.integers(1, 30))
    def take(self, count: int) -> None:
        for _ in range(count):
            entry = self.queue.take()
            if entry is None:
                assert not self.ready
                return
            expected = self.ready.pop(0)
            assert int(entry.message.body) == expected.number
            self.out.append((entry, expected))

    @precondition(lambda self: self.out)
    @rule(choice=st.randoms(use_true_random=False), count=st.integers(1, 20), outcome=st.sampled_from(DeliveryOutcome))
    def settle(self, choice: Random, count: int, outcome: DeliveryOutcome) -> None:
        for _ in range(min(count, len(self.out))):
            entry, waiting = self.out.pop(choice.randrange(len(self.out)))
            self.queue.settle(entry, outcome)
            if outcome is DeliveryOutcome.REQUEUED:
                self.ready.append(waiting)
        self.ready.sort()

    @precondition(lambda self: self.ready)
    @rule(choice=st.randoms(use_true_random=False), count=st.integers(1, 10))
    def remove(self, choice: Random, count: int) -> None:
        """Remove messages from the middle."""
        positions = sorted(self.queue.ready.positions())
        removed = self.queue.ready.remove(set(choice.sample(positions, min(count, len(positions)))))
        assert [entry.position for entry in removed] == sorted(entry.position for entry in removed)
        for entry in removed:
            self.queue.forget(entry)
        numbers = {int(entry.message.body) for entry in removed}
        assert len(numbers) == min(count, len(positions))
        self.ready = [waiting for waiting in self.ready if waiting.number not in numbers]

    @rule()
    def restart(self) -> None:
        """Kill the broker; persistent messages wait again in their old positions."""
        self.crash()
        waiting = [*self.ready, *(waiting for _, waiting in self.out)]
        self.queue = self.broker.vhost.queue("q")
        self.ready = sorted(each for each in waiting if each.is_persistent)
        self.out = []

    @invariant()
    def counts_match_the_model(self) -> None:
        assert len(self.queue) == len(self.ready)
        assert self.queue.ready.bytes == sum(waiting.size for waiting in self.ready)
        assert len(list(self.queue.ready.positions())) == len(self.ready)

    @invariant()
    def peek_returns_the_next_message(self) -> None:
        head = self.queue.ready.peek()
        assert (None if head is None else int(head.message.body)) == (self.ready[0].number if self.ready else None)

    def empty(self) -> None:
        for entry, _ in self.out:
            self.queue.accept(entry)
        self.queue.drops.purge()


TestPriorityMachine = PriorityMachine.TestCase
TestPriorityMachine.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
