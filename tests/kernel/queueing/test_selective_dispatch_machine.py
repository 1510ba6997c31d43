"""Stateful test of selective dispatch: each consumer gets its first matching message, and none waits without need.

Three queues (a durable one, one with priorities, one with a single active consumer) have messages with colours. Four
recipients select some colours, or first deliveries only, or everything. The limit of messages in memory is so low that
paging happens all the time. The model is a sorted list for each queue.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from gateway.kernel.messages.message import Message, Properties, Value
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.testing import MemoryBroker, Received, Recipient
from tests.effort import examples
from tests.kernel.broker_machine import RecipientMachine
from tests.kernel.discarding import discard_these
from tests.kernel.word_selection import WordSelection

QUEUES: Final[dict[str, dict[str, Value]]] = {
    "durable": {},
    "ranked": {"x-max-priority": 2},
    "single": {"x-single-active-consumer": True},
}
RECIPIENTS: Final = 4
#: So few messages that a consumer of higher priority has always examined all of them before another one does.
MOST_WAITING: Final = 30

WORDS: Final = (b"red", b"green", b"blue")
SELECTIONS: Final[tuple[Callable[[], WordSelection | None], ...]] = (
    lambda: None,
    lambda: WordSelection(b"red"),
    lambda: WordSelection(b"green", b"red"),
    lambda: WordSelection(b"blue", first_only=True),
    lambda: WordSelection(b"no such thing"),
)


@dataclass
class Waiting:
    """A message in one queue of the model."""

    rank: int
    order: int
    body: bytes
    deliveries: int = 0

    def matches(self, consumer: Consumer) -> bool:
        selection = consumer.selection
        assert selection is None or isinstance(selection, WordSelection)
        return selection is None or selection.matches(self.body, self.deliveries)


class SelectingMachine(RecipientMachine):
    """Random use of three queues by four recipients, checked step by step."""

    @initialize(
        resident_messages=st.sampled_from([1, 3, 8, 2048]), reserve=st.sampled_from([0, 4_000, 16_000, 1_000_000])
    )
    def start(self, resident_messages: int, reserve: int) -> None:
        self.orders = count()
        self.broker = MemoryBroker(resident_messages=resident_messages, reserve=reserve)
        self.queues = {
            name: self.broker.vhost.declare_queue(name, is_durable=True, arguments=arguments)
            for name, arguments in QUEUES.items()
        }
        self.ready: dict[str, list[Waiting]] = {name: [] for name in QUEUES}
        self.open_recipients(*[0] * RECIPIENTS)

    # Steps

    @rule(
        name=st.sampled_from(list(QUEUES)),
        messages=st.lists(st.tuples(st.sampled_from(WORDS), st.integers(0, 3), st.booleans()), min_size=1, max_size=8),
    )
    def publish(self, name: str, messages: list[tuple[bytes, int, bool]]) -> None:
        queue, ready = self.queues[name], self.ready[name]
        for word, priority, is_persistent in messages[: MOST_WAITING - len(ready)]:
            rank = -min(priority, 2) if name == "ranked" else 0
            waiting = Waiting(rank, next(self.orders), b"%b %d" % (word, priority))
            properties = Properties(priority=priority, delivery_mode=2 if is_persistent else 1)
            self.wait(ready, waiting)
            queue.offer(Message("", name, native_header(properties), waiting.body))
            self.check_deliveries()

    @rule(
        index=st.integers(0, RECIPIENTS - 1),
        name=st.sampled_from(list(QUEUES)),
        prefetch=st.integers(0, 3),
        settles=st.sampled_from([True, True, False]),
        priority=st.sampled_from([0, 0, 1]),
        selection=st.sampled_from(SELECTIONS),
    )
    def consume(
        self,
        index: int,
        name: str,
        prefetch: int,
        settles: bool,
        priority: int,
        selection: Callable[[], WordSelection | None],
    ) -> None:
        queue = self.queues[name]
        if len(queue.consumers) < 5:
            self.recipients[index].consume(
                queue,
                f"consumer {next(self.orders)}",
                prefetch=prefetch,
                settles=settles,
                priority=priority,
                selection=selection(),
            )
            self.check_deliveries()

    @rule(index=st.integers(0, RECIPIENTS - 1), name=st.sampled_from(list(QUEUES)))
    def get(self, index: int, name: str) -> None:
        """A get takes the oldest message, whatever consumers select."""
        recipient, ready = self.recipients[index], self.ready[name]
        received = recipient.get(self.queues[name])
        assert (received is not None) == bool(ready)
        if received is not None:
            assert received.tag is not None
            self.log.pop()
            assert received.body == ready[0].body
            self.held[recipient, received.tag] = ready.pop(0)

    @rule(name=st.sampled_from(list(QUEUES)), place=st.integers(0, MOST_WAITING))
    def discard_one_in_the_middle(self, name: str, place: int) -> None:
        """Discard a message, as limits and TTLs do."""
        queue, ready = self.queues[name], self.ready[name]
        if place < len(ready):
            gone = ready.pop(place)
            older = sum(waiting.order < gone.order for waiting in ready)
            discard_these(queue, {sorted(queue.ready.positions())[older]})

    # Checks against the model

    def wait(self, ready: list[Waiting], waiting: Waiting) -> None:
        ready.append(waiting)
        ready.sort(key=lambda each: (each.rank, each.order))

    def check_deliveries(self) -> None:
        """Check the deliveries since the last call: each is the first waiting message that its consumer selects."""
        for recipient, received in self.log:
            ready = self.ready[received.queue]
            consumer = self.consumer(recipient, received)
            wanted = next(waiting for waiting in ready if waiting.matches(consumer))
            assert received.body == wanted.body
            assert received.redelivered == (wanted.deliveries > 0)
            ready.remove(wanted)
            if received.tag is not None:
                self.held[recipient, received.tag] = wanted
        self.log.clear()

    def consumer(self, recipient: Recipient, received: Received) -> Consumer:
        return next(consumer for consumer in recipient.consumers if consumer.tag == received.consumer_tag)

    def ready_in_model(self, name: str) -> list[Waiting]:
        return self.ready[name]

    def clear_model(self, name: str) -> None:
        self.ready[name].clear()

    def conclude(self, held: tuple[Recipient, int], outcome: DeliveryOutcome) -> None:
        delivery = next(delivery for delivery in held[0].ledger if delivery.tag == held[1])
        waiting = self.held.pop(held)
        if outcome is DeliveryOutcome.REQUEUED:
            waiting.deliveries += 1
            self.wait(self.ready[delivery.queue.name], waiting)

    # Invariants

    @invariant()
    def counts_match_the_model(self) -> None:
        for name, queue in self.queues.items():
            assert len(queue) == len(self.ready[name])
            assert queue.ready.bytes == sum(len(waiting.body) for waiting in self.ready[name])
        assert sum(queue.unsettled for queue in self.queues.values()) == len(self.held)

    @invariant()
    def credit_is_never_exceeded(self) -> None:
        for recipient in self.recipients:
            for consumer in recipient.consumers:
                assert consumer.credit.used <= (consumer.credit.limit or len(self.held))

    @invariant()
    def no_consumer_with_capacity_waits_beside_a_matching_message(self) -> None:
        for name, queue in self.queues.items():
            for consumer in queue.consumers:
                if consumer.has_capacity and queue.consumers.is_active(consumer):
                    assert not any(waiting.matches(consumer) for waiting in self.ready[name])

    @invariant()
    def selective_dispatch_is_active_while_a_consumer_has_a_selection(self) -> None:
        for queue in self.queues.values():
            selects = any(consumer.selection is not None for consumer in queue.consumers)
            assert (queue.selecting is not None) == selects


TestSelectingMachine = SelectingMachine.TestCase
TestSelectingMachine.settings = settings(max_examples=examples(75), stateful_step_count=50, deadline=None)
