"""Stateful test of delays: each message becomes ready once and not before it is due, despite kills and cancellations.

The limit of contents in memory is so low that most of them are read back from the store.
"""

from dataclasses import dataclass
from random import Random
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from gateway.kernel.backlog import delay_index as delays
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.queue import Queue
from gateway.testing import MemoryBroker
from tests.effort import examples
from tests.kernel.backlog.steps import found_by, result_of
from tests.kernel.broker_machine import BrokerMachine

RETRY_DELAYS_MS = (30, 100)


@dataclass
class Modelled:
    """A message of the model: its due time and the number of returns."""

    due_ms: int
    is_persistent: bool
    tries: int = 0


class DelaysMachine(BrokerMachine):
    """A queue with delays and retries, and the expected state of each message."""

    @initialize()
    def start(self) -> None:
        self.patch = patch.object(delays, "RESIDENT_DELAYED", 2)
        self.patch.start()
        self.broker = MemoryBroker(resident_messages=3)
        self.queue: Queue = self.broker.vhost.declare_queue(
            "q", is_durable=True, arguments={"x-delayed-delivery": True, "x-retry-delays": list(RETRY_DELAYS_MS)}
        )
        self.waiting: dict[bytes, Modelled] = {}
        self.out: list[tuple[QueuedMessage, Modelled]] = []
        self.number = 0

    @property
    def now_ms(self) -> int:
        return self.broker.clock.wall_ms()

    @property
    def held(self) -> set[bytes]:
        return {body for body, message in self.waiting.items() if message.due_ms > self.now_ms}

    @rule(
        delays_ms=st.lists(st.sampled_from([0, 0, 1, 20, 60, 200]), min_size=1, max_size=8),
        is_persistent=st.sampled_from([True, True, False]),
    )
    def publish(self, delays_ms: list[int], is_persistent: bool) -> None:
        for delay_ms in delays_ms:
            self.number += 1
            body = b"%d" % self.number
            self.broker.publish("q", body, headers={"x-delay": delay_ms}, is_persistent=is_persistent)
            self.waiting[body] = Modelled(self.now_ms + delay_ms, is_persistent)

    @rule(milliseconds=st.integers(0, 120))
    def advance(self, milliseconds: int) -> None:
        self.broker.advance(milliseconds / 1000)

    @precondition(lambda self: len(self.queue) > 0)
    @rule(count=st.integers(1, 6))
    def take(self, count: int) -> None:
        for _ in range(count):
            entry = self.queue.take()
            if entry is None:
                return
            message = self.waiting.pop(entry.message.body)
            assert message.due_ms <= self.now_ms, "released before it was due"
            assert entry.deliveries == message.tries
            self.out.append((entry, message))

    @precondition(lambda self: self.out)
    @rule(
        choice=st.randoms(use_true_random=False),
        outcomes=st.lists(st.sampled_from(DeliveryOutcome), min_size=1, max_size=6),
    )
    def settle(self, choice: Random, outcomes: list[DeliveryOutcome]) -> None:
        for outcome in outcomes[: len(self.out)]:
            self.conclude(*self.out.pop(choice.randrange(len(self.out))), outcome)

    def conclude(self, entry: QueuedMessage, message: Modelled, outcome: DeliveryOutcome) -> None:
        self.queue.settle(entry, outcome)
        is_retried = outcome is DeliveryOutcome.REJECTED and message.tries < len(RETRY_DELAYS_MS)
        if is_retried:
            message.due_ms = self.now_ms + RETRY_DELAYS_MS[message.tries]
        if is_retried or outcome is DeliveryOutcome.REQUEUED:
            message.tries += 1
            self.waiting[entry.message.body] = message

    @precondition(lambda self: len(self.queue.ensure_delayed().delays) > 0)
    @rule(choice=st.randoms(use_true_random=False), count=st.integers(1, 4))
    def cancel(self, choice: Random, count: int) -> None:
        listed = found_by(self.queue.ensure_delayed().delays.listing(0, 1000))
        chosen = choice.sample(listed, min(count, len(listed)))
        for held in chosen:
            assert result_of(self.queue.ensure_delayed().delays.cancel(held.position))
            del self.waiting[held.message.body]

    @precondition(lambda self: len(self.queue.ensure_delayed().delays) > 2)
    @rule()
    def kill(self) -> None:
        """Kill the broker: persistent messages wait again, unsettled ones are requeued."""
        self.crash()
        for entry, message in self.out:
            self.waiting[entry.message.body] = message
        self.out = []
        self.queue = self.broker.vhost.queue("q")
        self.waiting = {body: message for body, message in self.waiting.items() if message.is_persistent}
        self.broker.advance(0)

    @invariant()
    def delayed_messages_are_listed_by_due_time(self) -> None:
        listed = found_by(self.queue.ensure_delayed().delays.listing(0, 1000))
        assert {held.message.body for held in listed} == self.held
        assert len(listed) == len(self.queue.ensure_delayed().delays)
        times = [held.due_at_ms for held in listed]
        assert times == sorted(times)
        assert times == [self.waiting[held.message.body].due_ms for held in listed]

    @invariant()
    def other_messages_are_ready(self) -> None:
        assert len(self.queue) == len(self.waiting) - len(self.held)

    def empty(self) -> None:
        self.patch.stop()
        for entry, _ in self.out:
            self.queue.accept(entry)
        self.queue.drops.purge()
        self.queue.ensure_delayed().delays.clear()


TestDelaysMachine = DelaysMachine.TestCase
TestDelaysMachine.settings = settings(max_examples=examples(80), stateful_step_count=60, deadline=None)
