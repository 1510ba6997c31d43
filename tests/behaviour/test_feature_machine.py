"""Random sequences of expiry, limits, redeliveries and dead-lettering, checked against a model.

One queue dead-letters to another. Messages are published, fetched and settled, policies set and removed, time advances,
and the broker is killed and restarted. Few messages stay in memory, so paging happens all the time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.message import Message, Properties, Value
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.vhosts.verdict import Verdict
from gateway.testing import MemoryBroker, Recipient
from tests.effort import examples
from tests.kernel.broker_machine import BrokerMachine

TO_DEAD: Final[dict[str, Value]] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}

LIMITS: Final = st.fixed_dictionaries(
    {},
    optional={
        "message-ttl": st.integers(0, 40),
        "max-length": st.integers(0, 6),
        "max-length-bytes": st.integers(0, 12),
        "delivery-limit": st.integers(-1, 2),
        "overflow": st.sampled_from(["drop-head", "reject-publish", "reject-publish-dlx"]),
    },
)


@dataclass
class ModelMessage:
    """A message in the model."""

    order: int
    body: bytes
    enqueued_at_ms: int
    ttl_ms: int | None
    tries: int = 0


@dataclass
class QueueModel:
    """The queue in the model, with the messages dropped since the last check."""

    arguments: dict[str, Any]  # Any: numbers and one string
    policy: dict[str, Any] = field(default_factory=dict)
    ready: list[ModelMessage] = field(default_factory=list)
    held: list[ModelMessage] = field(default_factory=list)
    dead: list[tuple[bytes, str]] = field(default_factory=list)
    now_ms: int = 0

    def copy(self) -> "QueueModel":
        return replace(self, ready=list(self.ready), held=list(self.held), dead=list(self.dead))

    def limit(self, name: str) -> int | None:
        values = [values[name] for values in (self.arguments, self.policy) if name in values]
        return min(values, default=None)

    @property
    def tries_allowed(self) -> int:
        values = [values["delivery-limit"] for values in (self.arguments, self.policy) if "delivery-limit" in values]
        return max(values) if min(values, default=-1) < 0 and values else min(values, default=-1)

    @property
    def overflow(self) -> str:
        return str(self.arguments.get("overflow", self.policy.get("overflow", "drop-head")))

    def is_over(self, further: int = 0, size: int = 0) -> bool:
        length, size_limit = self.limit("max-length"), self.limit("max-length-bytes")
        too_many = length is not None and len(self.ready) + further > length
        return too_many or (
            size_limit is not None and sum(len(message.body) for message in self.ready) + size > size_limit
        )

    def die(self, reason: str) -> None:
        self.dead.append((self.ready.pop(0).body, reason))

    def shrink(self) -> None:
        while self.overflow == "drop-head" and self.ready and self.is_over():
            self.die("maxlen")

    def expire(self) -> None:
        while self.ready and self.is_expired(self.ready[0]):
            self.die("expired")

    def is_expired(self, message: ModelMessage) -> bool:
        values = [lives for lives in (message.ttl_ms, self.limit("message-ttl")) if lives is not None]
        return bool(values) and message.enqueued_at_ms + min(values) <= self.now_ms

    def publish(self, message: ModelMessage) -> bool:
        if self.overflow != "drop-head" and self.is_over(1, len(message.body)):
            if self.overflow == "reject-publish-dlx":
                self.dead.append((message.body, "maxlen"))
            return False
        self.ready.append(message)
        self.shrink()
        self.expire()
        return True

    def take(self) -> ModelMessage | None:
        self.expire()
        if not self.ready:
            return None
        self.held.append(self.ready.pop(0))
        self.expire()
        return self.held[-1]

    def put_back(self, message: ModelMessage) -> None:
        message.tries += 1
        if 0 <= self.tries_allowed < message.tries:
            self.dead.append((message.body, "delivery_limit"))
            return
        self.ready = sorted([*self.ready, message], key=lambda waiting: waiting.order)
        self.shrink()
        self.expire()

    def restart(self) -> None:
        self.ready = sorted([*self.ready, *self.held], key=lambda waiting: waiting.order)
        self.held = []


class FeatureMachine(BrokerMachine):
    """Random operations on one queue, checked step by step."""

    @initialize(resident_messages=st.integers(1, 5), arguments=LIMITS)
    def start(self, resident_messages: int, arguments: dict[str, Value]) -> None:
        self.numbers = count()
        self.arguments = arguments
        self.broker = MemoryBroker(resident_messages=resident_messages)
        self.started_ms = self.broker.clock.wall_ms()
        self.model = QueueModel(dict(arguments))
        self.declare()

    def declare(self) -> None:
        self.broker.vhost.declare_queue("dead", is_durable=True)
        prefixed = {f"x-{name}": value for name, value in self.arguments.items()}
        self.queue = self.broker.vhost.declare_queue("q", is_durable=True, arguments={**prefixed, **TO_DEAD})
        self.recipient = Recipient()
        self.held: dict[int, ModelMessage] = {}

    @rule(size=st.integers(0, 4), ttl_ms=st.none() | st.integers(0, 40))
    def publish(self, size: int, ttl_ms: int | None) -> None:
        number = next(self.numbers)
        body = b"%d" % number + b"." * size
        waiting = ModelMessage(number, body, self.now_ms, ttl_ms)
        expiration = None if ttl_ms is None else str(ttl_ms)
        header = native_header(Properties(delivery_mode=2, expiration=expiration))
        vhost = self.broker.vhost
        verdict = vhost.publish(vhost.default_exchange, Message("", "q", header, body))
        assert (verdict is Verdict.TAKEN) == self.model.publish(waiting)

    @rule()
    def get(self) -> None:
        received, expected = self.recipient.get(self.queue), self.model.take()
        assert (received and received.body) == (expected and expected.body)
        if received is not None and expected is not None:
            assert received.tag is not None
            self.held[received.tag] = expected
            counts = self.queue.settings.number("delivery-limit") is not None
            shown = received.message.headers.get("x-delivery-count", 0)
            assert shown == (expected.tries if counts else 0)

    @precondition(lambda self: self.held)
    @rule(data=st.data(), outcome=st.sampled_from(DeliveryOutcome))
    def settle(self, data: st.DataObject, outcome: DeliveryOutcome) -> None:
        tag = data.draw(st.sampled_from(sorted(self.held)), label="delivery")
        waiting = self.held.pop(tag)
        self.recipient.settle(tag, outcome)
        self.model.held.remove(waiting)
        if outcome is DeliveryOutcome.REQUEUED:
            self.model.put_back(waiting)
        elif outcome is DeliveryOutcome.REJECTED:
            self.model.dead.append((waiting.body, "rejected"))

    @rule(milliseconds=st.integers(0, 30))
    def let_time_pass(self, milliseconds: int) -> None:
        self.broker.advance(milliseconds / 1000)
        self.model.now_ms = self.now_ms
        self.model.expire()

    @rule(definition=LIMITS)
    def change_policy(self, definition: dict[str, Value]) -> None:
        record = PolicyRecord("/", "p", False, "^q$", "queues", 0, definition)
        if definition:
            self.broker.kernel.put_policy(record)
        elif record.key in self.broker.kernel.policies:
            self.broker.kernel.remove_policy(record)
        self.model.policy = dict(definition)
        self.model.shrink()
        self.model.expire()

    @rule()
    def restart(self) -> None:
        """A message that is both expired and above a limit may be dropped for either reason."""
        self.crash()
        self.declare()
        self.broker.advance(0)
        self.model.restart()
        died = self.dead_letters()
        outcomes = [self.after(QueueModel.expire, QueueModel.shrink), self.after(QueueModel.shrink, QueueModel.expire)]
        self.model = next(model for model in outcomes if model.dead == died)
        self.model.dead.clear()

    def after(self, *steps: Callable[[QueueModel], None]) -> QueueModel:
        model = self.model.copy()
        for step in steps:
            step(model)
        return model

    @property
    def now_ms(self) -> int:
        return self.broker.clock.wall_ms() - self.started_ms

    def dead_letters(self) -> list[tuple[bytes, str]]:
        """Return body and reason of the messages dropped since the last call, in order."""
        consumer, letters = Recipient(), []
        while (received := consumer.get(self.broker.vhost.queue("dead"))) is not None:
            deaths = received.message.headers["x-death"]
            assert isinstance(deaths, list)
            assert len(deaths) == 1
            assert isinstance(deaths[0], dict)
            assert received.message.properties.expiration is None
            letters.append((received.body, str(deaths[0]["reason"])))
            consumer.settle(received.tag)
        return letters

    @invariant()
    def dead_letters_match_the_model(self) -> None:
        assert self.dead_letters() == self.model.dead
        self.model.dead.clear()

    @invariant()
    def counts_match_the_model(self) -> None:
        assert len(self.queue) == len(self.model.ready)
        assert self.queue.ready.bytes == sum(len(waiting.body) for waiting in self.model.ready)
        assert self.queue.unsettled == len(self.model.held)

    def empty(self) -> None:
        self.recipient.leave()
        self.queue.drops.purge()
        self.dead_letters()


TestFeatureMachine = FeatureMachine.TestCase
TestFeatureMachine.settings = settings(max_examples=examples(100), stateful_step_count=50, deadline=None)
