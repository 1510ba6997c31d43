"""Traces of messages in memory: one number, the events in order, and limits."""

from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.api import Decision, Interceptor, Refusal
from gateway.kernel.archives.message_trace import MessageTrace
from gateway.kernel.archives.message_traces import TraceRules
from gateway.kernel.archives.whereabouts import whereabouts
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.death_records import DeathReason
from gateway.kernel.messages.message import Message, Value
from gateway.kernel.messages.origin import Origin
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.plugins.registry import PluginRegistry, load_plugins
from gateway.testing import MemoryBroker, Recipient
from gateway.testing.broker import header_of
from tests.effort import examples

ORIGIN = Origin("client -> broker", 1, "guest", "amqp091")


@cache
def _registry() -> PluginRegistry:
    return load_plugins()


def traced(sample: float = 1.0, *, resident_messages: int = 2048, **limits: int) -> MemoryBroker:
    broker = MemoryBroker(resident_messages=resident_messages, registry=_registry())
    broker.vhost.message_traces.use(TraceRules(**limits))
    broker.kernel.trace_messages("/", sample)
    return broker


def declare(broker: MemoryBroker, name: str = "q", **arguments: Value) -> None:
    asked = {f"x-{argument.replace('_', '-')}": value for argument, value in arguments.items()}
    broker.vhost.declare_queue(name, is_durable=True, arguments=asked)


def publish(broker: MemoryBroker, key: str = "q", *, is_persistent: bool = True) -> None:
    message = Message("", key, header_of(is_persistent=is_persistent), b"body")
    broker.vhost.publish(broker.vhost.default_exchange, message, ORIGIN)


def only(broker: MemoryBroker) -> MessageTrace:
    [trace] = broker.vhost.message_traces
    return trace


def kinds(trace: MessageTrace) -> list[str]:
    return [event.kind for event in trace.events]


def where(broker: MemoryBroker, trace: MessageTrace | None = None) -> dict[str, str]:
    vhost = broker.vhost
    found = whereabouts(trace or only(broker), vhost.message_traces.departures, vhost.queue_by_name.__contains__)
    return {f"exchange {exchange}" if exchange else queue: state for queue, exchange, state in found}


def deliver(broker: MemoryBroker, outcome: DeliveryOutcome | None, name: str = "q") -> None:
    queue = broker.vhost.queue(name)
    entry = queue.take()
    assert entry is not None
    assert broker.vhost.tracing is not None
    broker.vhost.tracing.delivered(entry.message, queue, entry.is_redelivered, ORIGIN, entry)
    if outcome is not None:
        queue.settle(entry, outcome)


class Refusing(Interceptor):
    """Refuses every message."""

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        return Refusal("too late")


def test_a_message_is_followed_from_its_publish_to_its_acknowledgement() -> None:
    broker = traced()
    declare(broker)
    publish(broker)
    assert where(broker) == {"q": "ready"}
    deliver(broker, DeliveryOutcome.REQUEUED)
    assert where(broker) == {"q": "ready"}
    deliver(broker, None)
    assert where(broker) == {"q": "unsettled"}
    trace = only(broker)
    assert kinds(trace) == ["publish", "route", "enqueue", "deliver", "requeue", "deliver"]
    first, second = [event for event in trace.events if event.kind == "deliver"]
    assert (first.origin, first.redelivered, second.redelivered) == (ORIGIN, False, True)
    assert trace.events[0].origin is ORIGIN


def test_an_accepted_message_is_consumed() -> None:
    broker = traced()
    declare(broker)
    publish(broker)
    deliver(broker, DeliveryOutcome.ACCEPTED)
    assert (kinds(only(broker))[-1], where(broker)) == ("settle", {"q": "consumed"})


def test_a_dead_letter_keeps_its_number() -> None:
    broker = traced()
    declare(broker, message_ttl=1000, dead_letter_exchange="", dead_letter_routing_key="dead")
    declare(broker, "dead")
    publish(broker)
    broker.advance(2)
    trace = only(broker)
    assert kinds(trace) == ["publish", "route", "enqueue", "expire", "dead-letter", "enqueue"]
    assert (trace.events[4].routing_key, trace.events[4].detail) == ("dead", "expired")
    assert where(broker) == {"q": "expired", "dead": "ready"}


def test_drops_have_their_reasons() -> None:
    broker = traced()
    declare(broker, max_length=1, overflow="reject-publish")
    for key in ("q", "q", "nowhere"):
        publish(broker, key)
    unroutable, refused, _ = broker.vhost.message_traces
    assert (where(broker, refused), where(broker, unroutable)) == ({"q": "maxlen"}, {"": "unroutable"})


def test_a_deleted_queue_is_shown() -> None:
    broker = traced()
    declare(broker)
    publish(broker)
    broker.vhost.delete_queue(broker.vhost.queue("q"))
    assert where(broker) == {"q": "queue deleted"}


def test_a_purge_and_a_later_queue_of_the_same_name_do_not_leave_a_message_ready() -> None:
    broker = traced()
    declare(broker)
    publish(broker)
    broker.vhost.queue("q").drops.purge()
    assert where(broker) == {"q": "purged"}
    broker.advance(1)
    publish(broker)
    deliver(broker, None)
    second, first = broker.vhost.message_traces
    broker.vhost.queue("q").drops.purge()
    assert (where(broker, first), where(broker, second)) == ({"q": "purged"}, {"q": "unsettled"})
    broker.vhost.delete_queue(broker.vhost.queue("q"))
    declare(broker)
    assert (where(broker, first), where(broker, second)) == ({"q": "purged"}, {"q": "queue deleted"})


def delay(
    broker: MemoryBroker, key: str = "q", *, exchange: str = "", name: str = "x-delay", value: Value = 1000
) -> None:
    message = Message(exchange, key, header_of(headers={name: value}, is_persistent=True), b"body")
    broker.vhost.publish(broker.vhost.exchange(exchange), message, ORIGIN)


def test_a_message_that_an_exchange_delays_is_found_there_and_then_in_its_queue() -> None:
    broker = traced()
    declare(broker)
    broker.vhost.declare_exchange("later", "x-delayed-message", arguments={"x-delayed-type": "direct"})
    broker.vhost.bind(broker.vhost.exchange("later"), broker.vhost.queue("q"), "q")
    for key in ("q", "nowhere"):
        delay(broker, key, exchange="later")
    unroutable, routed = broker.vhost.message_traces
    assert where(broker, routed) == {"exchange later": "delayed"}
    broker.advance(2)
    assert (where(broker, routed), where(broker, unroutable)) == ({"q": "ready"}, {"": "unroutable"})
    assert kinds(routed) == ["publish", "delay", "due", "route", "enqueue"]


def test_a_message_that_a_queue_delays_is_found_there() -> None:
    broker = traced()
    declare(broker, delayed_delivery=True)
    delay(broker)
    assert where(broker) == {"q": "delayed"}
    broker.advance(2)
    assert where(broker) == {"q": "ready"}


def test_a_rejected_message_with_attempts_left_is_delayed_and_then_ready() -> None:
    broker = traced()
    declare(broker, retry_delays=[1000])
    publish(broker)
    deliver(broker, DeliveryOutcome.REJECTED)
    assert where(broker) == {"q": "delayed"}
    broker.advance(2)
    assert where(broker) == {"q": "ready"}


def test_duplicates_are_dropped_with_this_reason() -> None:
    broker = traced()
    declare(broker, message_deduplication=True)
    broker.vhost.declare_exchange("once", "x-message-deduplication", arguments={"x-cache-size": 10})
    broker.vhost.bind(broker.vhost.exchange("once"), broker.vhost.queue("q"), "")
    for exchange, value in (("", 1), ("", 1), ("once", 2), ("once", 2)):
        delay(broker, exchange=exchange, name="x-deduplication-header", value=value)
    dropped_by_exchange, _, dropped_by_queue, _ = broker.vhost.message_traces
    assert where(broker, dropped_by_exchange) == {"exchange once": "duplicate"}
    assert where(broker, dropped_by_queue) == {"q": "duplicate"}


def test_the_end_of_a_dead_letter_has_its_reason() -> None:
    broker = traced()
    declare(broker, "cycle", message_ttl=1000, dead_letter_exchange="", dead_letter_routing_key="cycle")
    declare(broker, "lost", message_ttl=1000, dead_letter_exchange="", dead_letter_routing_key="nowhere")
    for key in ("cycle", "lost"):
        publish(broker, key)
    broker.advance(2)
    lost, cycle = broker.vhost.message_traces
    assert where(broker, cycle) == {"cycle": "cycle"}
    assert where(broker, lost) == {"lost": "expired", "": "unroutable"}


def test_a_message_that_was_delivered_without_acknowledgement_is_not_unsettled() -> None:
    broker = traced()
    declare(broker)
    publish(broker)
    queue = broker.vhost.queue("q")
    entry = queue.take()
    assert entry is not None
    queue.consumed(entry)
    assert broker.vhost.tracing is not None
    broker.vhost.tracing.delivered(entry.message, queue, False, ORIGIN, None)
    assert where(broker) == {"q": "delivered"}


def test_a_message_that_an_interceptor_refuses_has_a_trace_with_the_reason() -> None:
    broker = traced()
    broker.vhost.interception.apply([Refusing()])
    assert broker.vhost.interception.publishing is not None
    broker.vhost.interception.publishing.intercept(Message("", "q", header_of(), b"body"), ORIGIN)
    assert (where(broker), only(broker).events[-1].detail) == ({"": "refused"}, "too late")


def test_the_policy_of_the_queue_is_noted() -> None:
    broker = traced()
    declare(broker)
    broker.kernel.put_policy(PolicyRecord("/", "limit", False, "q", "queues", 0, {"max-length": 5}))
    publish(broker)
    assert only(broker).events[-1].detail == "policy limit"


@pytest.mark.parametrize("is_persistent", [True, False])
def test_a_message_that_was_paged_out_keeps_its_trace(is_persistent: bool) -> None:
    broker = traced(resident_messages=8)
    declare(broker)
    for _ in range(100):
        publish(broker, is_persistent=is_persistent)
    broker.commit()
    for _ in range(100):
        deliver(broker, DeliveryOutcome.ACCEPTED)
        broker.commit()
    assert {tuple(kinds(trace)) for trace in broker.vhost.message_traces} == {
        ("publish", "route", "enqueue", "deliver", "settle")
    }


def test_sampling_is_even() -> None:
    broker = traced(0.25)
    declare(broker)
    for _ in range(100):
        publish(broker)
    assert len(broker.vhost.message_traces) == 25


def test_nothing_is_traced_while_it_is_off() -> None:
    broker = traced()
    declare(broker)
    broker.kernel.trace_messages("/", 0)
    publish(broker)
    assert len(broker.vhost.message_traces) == 0
    assert broker.vhost.tracing is None


@settings(max_examples=examples(40), deadline=None)
@given(
    most_messages=st.integers(1, 20),
    most_bytes=st.integers(1000, 20_000),
    actions=st.lists(st.sampled_from(["publish", "accept", "requeue", "lost"]), max_size=60),
)
def test_the_store_stays_within_its_limits(most_messages: int, most_bytes: int, actions: list[str]) -> None:
    broker = traced(most_messages=most_messages, most_bytes=most_bytes)
    declare(broker)
    published = 0
    for action in actions:
        if action in ("publish", "lost"):
            publish(broker, "q" if action == "publish" else "nowhere")
            published += 1
            assert_bounded(broker, most_messages, most_bytes)
        elif len(broker.vhost.queue("q")):
            deliver(broker, DeliveryOutcome.ACCEPTED if action == "accept" else DeliveryOutcome.REQUEUED)
    traces = broker.vhost.message_traces
    assert len(traces) + traces.evicted == published
    assert traces.bytes == sum(trace.size for trace in traces)
    traces.clear()
    assert (traces.bytes, list(internals(broker))) == (0, [0, 0, 0])


def assert_bounded(broker: MemoryBroker, most_messages: int, most_bytes: int) -> None:
    traces = broker.vhost.message_traces
    assert len(traces) <= most_messages
    assert traces.bytes <= most_bytes or len(traces) == 1


def internals(broker: MemoryBroker) -> Iterator[int]:
    traces = broker.vhost.message_traces
    return (len(table) for table in (list(traces), traces._trace_by_place, traces._trace_by_content))


class Observing(Recipient):
    """Reports each delivery to the tracing, as the adapters do."""

    def __init__(self, broker: MemoryBroker) -> None:
        super().__init__()
        self._vhost = broker.vhost

    def deliver(self, consumer: Consumer, message: Message, redelivered: bool, entry: QueuedMessage | None) -> None:
        super().deliver(consumer, message, redelivered, entry)
        assert self._vhost.tracing is not None
        self._vhost.tracing.delivered(message, consumer.queue, redelivered, ORIGIN, entry)


def consumed_at_once(**limits: int) -> tuple[MemoryBroker, Observing]:
    """Return a broker that traces, with the queue ``q`` and its consumer, which acknowledges nothing."""
    broker = traced(**limits)
    declare(broker)
    recipient = Observing(broker)
    recipient.consume(broker.vhost.queue("q"), settles=False)
    return broker, recipient


SHARED = header_of()


def publish_alike(broker: MemoryBroker, key: str = "q", exchange: str = "") -> None:
    broker.vhost.publish(broker.vhost.exchange(exchange), Message(exchange, key, SHARED, b"body"), ORIGIN)


def test_messages_that_nothing_distinguishes_have_a_trace_each() -> None:
    broker, _ = consumed_at_once()
    for _ in range(5):
        publish_alike(broker)
    traces = broker.vhost.message_traces
    newest, *_, oldest = traces
    assert (len(traces), newest.id - oldest.id, newest.events) == (5, 4, oldest.events)
    assert kinds(newest) == ["publish", "route", "enqueue", "deliver"]
    assert [traces.get(oldest.id + number) is not None for number in range(-1, 6)] == [False, *[True] * 5, False]


def test_a_later_event_of_a_message_that_shared_a_trace_is_in_its_own_only() -> None:
    broker, recipient = consumed_at_once()
    for _ in range(5):
        publish_alike(broker)
    queue = broker.vhost.queue("q")
    broker.vhost.trace_events.dropped_from(queue, recipient.received[1].message, DeathReason.REJECTED)
    publish_alike(broker)
    dropped = [kinds(trace)[-1] for trace in reversed(list(broker.vhost.message_traces))]
    assert dropped == ["deliver", "drop", "deliver", "deliver", "deliver", "deliver"]


def test_the_oldest_messages_that_share_a_trace_are_dropped_one_by_one() -> None:
    broker, recipient = consumed_at_once(most_messages=3)
    for _ in range(5):
        publish_alike(broker)
    traces = broker.vhost.message_traces
    assert (len(traces), traces.evicted, len(list(traces))) == (3, 2, 3)
    assert traces.bytes == sum(trace.size for trace in traces)
    broker.vhost.trace_events.dropped_from(broker.vhost.queue("q"), recipient.received[0].message, DeathReason.REJECTED)
    assert {kinds(trace)[-1] for trace in traces} == {"deliver"}


ACTIONS = ["alike", "alike", "alike", "fanout", "ready", "lost", "turn", "second", "late drop", "get"]


def perform(broker: MemoryBroker, recipient: Observing, action: str, number: int) -> None:
    vhost = broker.vhost
    if action in ("alike", "ready", "lost"):
        publish_alike(broker, {"alike": "q", "ready": "r", "lost": "nowhere"}[action])
    elif action == "fanout":
        publish_alike(broker, "", "amq.fanout")
    elif action == "turn":
        broker.commit()
    elif action == "second":
        broker.advance(1)
    elif action == "late drop" and recipient.received:
        message = recipient.received[number % len(recipient.received)].message
        vhost.trace_events.dropped_from(vhost.queue("q"), message, DeathReason.REJECTED)
    elif action == "get" and len(vhost.queue("r")):
        deliver(broker, DeliveryOutcome.ACCEPTED, "r")


@settings(max_examples=examples(20), deadline=None)
@given(
    most_messages=st.integers(1, 30),
    actions=st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 99)), max_size=30),
)
@example(2, [("fanout", 0), ("alike", 0), ("alike", 0), ("late drop", 1), ("alike", 0)])
def test_traces_are_the_same_whether_messages_share_them_or_not(
    most_messages: int, actions: list[tuple[str, int]]
) -> None:
    found = []
    for is_looked_at in (False, True):  # a trace that was seen is never used for another message
        broker, recipient = consumed_at_once(most_messages=most_messages)
        declare(broker, "r")
        for name in ("q", "r"):
            broker.vhost.bind(broker.vhost.exchange("amq.fanout"), broker.vhost.queue(name), "")
        for action, number in actions:
            perform(broker, recipient, action, number)
            if is_looked_at:
                list(broker.vhost.message_traces)
        traces = broker.vhost.message_traces
        assert traces.bytes == sum(trace.size for trace in traces)
        found.append([(trace.id, trace.events, traces.get(trace.id) is not None) for trace in traces])
    assert found[0] == found[1]
