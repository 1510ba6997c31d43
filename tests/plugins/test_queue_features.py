"""Queue features of plugins: their settings, their decisions, the calls that they get, and their faults."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.api import (
    ConfigurationError,
    DeathReason,
    DeliveryOutcome,
    FeatureQueue,
    Message,
    PreconditionFailed,
    QueuedMessage,
    QueueFeature,
    QueueFeatureType,
    QueueSetting,
    Rejection,
    Value,
)
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.queueing.feature_dispatch import NO_FEATURES
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.vhosts.verdict import Verdict
from gateway.testing import MemoryBroker, Recipient, check_queue_feature


class Recorder(QueueFeature):
    """Does what the body of a message says, and records every call."""

    def __init__(self, queue: FeatureQueue) -> None:
        self.queue = queue
        self.calls: list[str] = []
        self.inherited: QueueFeature | None = None

    def inherit(self, earlier: QueueFeature) -> None:
        self.inherited = earlier

    def on_enqueue(self, message: Message) -> Any:
        self.calls.append(f"enqueue {message.body.decode()}")
        answers: dict[bytes, object] = {
            b"drop": DeathReason.EXPIRED,
            b"reject": Rejection(DeathReason.MAXLEN),
            b"nonsense": "nonsense",
        }
        if message.body == b"raise":
            raise ValueError("a bad message")
        return answers.get(message.body)

    def on_ready(self, message: QueuedMessage) -> None:
        self.calls.append(f"ready {message.message.body.decode()}")

    def on_deliver(self, message: QueuedMessage) -> DeathReason | None:
        self.calls.append(f"deliver {message.message.body.decode()}")
        return DeathReason.REJECTED if message.message.body == b"late" else None

    def on_settle(self, message: QueuedMessage, outcome: DeliveryOutcome) -> None:
        self.calls.append(f"settle {message.message.body.decode()} {outcome.name}")

    def on_requeue(self, message: QueuedMessage) -> DeathReason | None:
        return DeathReason.DELIVERY_LIMIT if message.message.body == b"once" else None

    def on_drop(self, message: Message, reason: DeathReason) -> None:
        self.calls.append(f"drop {message.body.decode()} {reason.value}")

    def close(self) -> None:
        self.calls.append("close")


def number_fault(value: Value) -> str | None:
    if value == "raise":
        raise ValueError("cannot judge")
    return None if isinstance(value, int) and not isinstance(value, bool) and value > 0 else "must be above 0"


class Host:
    """A broker whose virtual host has the feature ``acme-limit``."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self.vhost = self.broker.vhost
        self.made: list[Recorder] = []
        self.type = QueueFeatureType({"acme-limit": QueueSetting(number_fault, merge=min)}, self.make)
        self.use(self.type)

    def use(self, *types: QueueFeatureType) -> None:
        self.vhost.policy_applier.use_features(types)

    def make(self, queue: FeatureQueue) -> Recorder:
        self.made.append(Recorder(queue))
        return self.made[-1]

    def declare(self, name: str = "q", limit: Value = 1, **arguments: Value) -> Queue:
        declared = self.vhost.declare_queue(name, is_durable=True, arguments={"x-acme-limit": limit, **arguments})
        assert isinstance(declared, Queue)
        return declared

    def policy(self, *, is_operator: bool = False, **definition: Value) -> None:
        keys = {name.replace("_", "-"): value for name, value in definition.items()}
        self.broker.kernel.put_policy(PolicyRecord("/", "p", is_operator, "^q", "queues", 0, keys))
        self.broker.advance(1)

    @property
    def calls(self) -> list[str]:
        return self.made[-1].calls


@pytest.fixture
def host() -> Host:
    return Host()


# Settings


def test_a_queue_without_the_setting_has_no_feature(host: Host) -> None:
    queue = host.vhost.declare_queue("plain")
    assert queue._feature_dispatch is NO_FEATURES
    assert host.made == []


def test_an_invalid_value_is_refused_with_the_text_of_the_check(host: Host) -> None:
    with pytest.raises(PreconditionFailed, match=r"invalid arg 'x-acme-limit' for queue 'q' .*: must be above 0"):
        host.declare(limit=0)


def test_a_check_that_fails_refuses_and_is_a_fault(host: Host) -> None:
    with pytest.raises(PreconditionFailed, match="its check failed: ValueError: cannot judge"):
        host.declare(limit="raise")
    assert host.broker.kernel.faults.count_by_kind == {"queue feature": 1}


def test_a_stream_refuses_the_argument(host: Host) -> None:
    with pytest.raises(PreconditionFailed, match=r"invalid arg 'x-acme-limit' .* of queue type rabbit_stream_queue"):
        host.declare(**{"x-queue-type": "stream"})


def test_a_redeclaration_repeats_the_argument(host: Host) -> None:
    assert host.declare(limit=5) is host.declare(limit=5)
    with pytest.raises(PreconditionFailed, match=r"inequivalent arg 'x-acme-limit' .* received '6' but current is '5'"):
        host.declare(limit=6)


def test_a_policy_gives_and_takes_the_feature(host: Host) -> None:
    queue = host.vhost.declare_queue("q")
    host.policy(acme_limit=7)
    assert host.made[0].queue.settings == {"acme-limit": 7}
    host.policy(max_length=10)
    assert host.calls == ["close"]
    assert len(queue.features) == 1


def test_a_policy_with_an_invalid_value_is_refused(host: Host) -> None:
    with pytest.raises(PreconditionFailed, match="0 is not a valid acme-limit: must be above 0"):
        host.policy(acme_limit=0)


def test_an_operator_policy_needs_a_merge_rule(host: Host) -> None:
    host.declare(limit=5)
    host.policy(is_operator=True, acme_limit=3)
    assert host.made[-1].queue.settings == {"acme-limit": 3}
    host.use(QueueFeatureType({"acme-limit": QueueSetting(number_fault)}, host.make))
    with pytest.raises(PreconditionFailed, match="not recognised policy settings"):
        host.policy(is_operator=True, acme_limit=2)


@given(st.integers(1, 9), st.none() | st.integers(1, 9), st.none() | st.integers(1, 9))
def test_the_smallest_of_argument_and_policies_applies(argument: int, policy: int | None, operator: int | None) -> None:
    host = Host()
    host.declare(limit=argument)
    if policy is not None:
        host.policy(acme_limit=policy)
    if operator is not None:
        host.policy(is_operator=True, acme_limit=operator)
    smallest = min(value for value in (argument, policy, operator) if value is not None)
    assert host.made[-1].queue.settings == {"acme-limit": smallest}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "needs at least one setting"),
        ({"x-acme": QueueSetting(number_fault)}, "without the prefix 'x-'"),
        ({"max-length": QueueSetting(number_fault)}, "belongs to the broker itself"),
        ({"single-active-consumer": QueueSetting(number_fault)}, "belongs to the broker itself"),
        ({"acme": number_fault}, "must be a QueueSetting"),
    ],
)
def test_invalid_settings_are_refused(settings: Mapping[str, Any], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        QueueFeatureType(settings, Recorder)


# Decisions


def test_a_dropped_message_is_confirmed_and_dead_lettered(host: Host) -> None:
    letters = host.vhost.declare_queue("letters")
    queue = host.declare(**{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "letters"})
    assert host.broker.publish("q", b"drop") is Verdict.TAKEN
    assert len(queue) == 0
    assert isinstance(letters, Queue)
    letter = letters.take()
    assert letter is not None
    assert letter.message.headers["x-first-death-reason"] == "expired"


def test_a_rejected_message_is_neither_confirmed_nor_dead_lettered(host: Host) -> None:
    letters = host.vhost.declare_queue("letters")
    host.declare(**{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "letters"})
    assert host.broker.publish("q", b"reject") is Verdict.REFUSED
    assert len(letters) == 0
    assert host.calls == ["enqueue reject"]


def test_the_life_of_a_message(host: Host) -> None:
    queue = host.declare()
    host.broker.publish("q", b"a")
    worker = Recipient()
    for outcome in (DeliveryOutcome.REQUEUED, DeliveryOutcome.ACCEPTED):
        received = worker.get(queue)
        assert received is not None
        worker.settle(received.tag, outcome)
    assert host.calls == [
        "enqueue a", "ready a", "deliver a", "settle a REQUEUED", "ready a", "deliver a", "settle a ACCEPTED",
    ]  # fmt: skip


def test_a_message_for_a_waiting_consumer_does_not_wait(host: Host) -> None:
    queue = host.declare()
    worker = Recipient()
    worker.consume(queue)
    host.broker.publish("q", b"a")
    worker.settle(worker.received[0].tag, DeliveryOutcome.REJECTED)
    assert host.calls == ["enqueue a", "settle a REJECTED", "drop a rejected"]


def test_messages_are_dropped_on_delivery_and_on_requeue(host: Host) -> None:
    queue = host.declare()
    host.broker.publish("q", b"late")
    host.broker.publish("q", b"once")
    worker = Recipient()
    received = worker.get(queue)
    assert received is not None
    assert received.body == b"once"
    worker.settle(received.tag, DeliveryOutcome.REQUEUED)
    assert host.calls[-1] == "drop once delivery_limit"
    assert "drop late rejected" in host.calls
    assert len(queue) == 0


def test_expired_messages_are_reported(host: Host) -> None:
    host.declare(**{"x-message-ttl": 1000})
    host.broker.publish("q", b"a")
    host.broker.advance(1)
    assert host.calls[-1] == "drop a expired"


def test_a_full_queue_is_not_asked(host: Host) -> None:
    host.declare(**{"x-max-length": 0, "x-overflow": "reject-publish"})
    assert host.broker.publish("q", b"a") is Verdict.REFUSED
    assert host.calls == []


def test_a_delayed_message_is_judged_when_it_is_due(host: Host) -> None:
    queue = host.declare(**{"x-delayed-delivery": True})
    host.broker.publish("q", b"drop", headers={"x-delay": 1000})
    assert (host.calls, queue.delayed_count) == ([], 1)
    host.broker.advance(1)
    assert host.calls == ["enqueue drop", "drop drop expired"]
    assert queue.delayed_count == 0


def test_a_timer_drops_the_oldest_messages(host: Host) -> None:
    queue = host.declare()
    for body in (b"a", b"b"):
        host.broker.publish("q", body)
    view = host.made[0].queue
    view.call_later(5, lambda: view.drop_oldest(DeathReason.EXPIRED))
    assert (view.ready, view.unsettled, view.consumers, view.name, view.vhost) == (2, 0, 0, "q", "/")
    host.broker.advance(5)
    assert len(queue) == 1
    assert host.calls[-1] == "drop a expired"


def test_timers_end_with_the_feature(host: Host) -> None:
    queue = host.declare()
    rung: list[str] = []
    view = host.made[0].queue
    view.call_later(5, lambda: rung.append("in time"))
    host.vhost.delete_queue(queue)
    view.call_later(5, lambda: rung.append("too late"))
    host.broker.advance(10)
    assert rung == []
    assert not view.drop_oldest(DeathReason.EXPIRED)


# Faults


@pytest.mark.parametrize("body", [b"raise", b"nonsense"])
def test_a_fault_is_counted_and_the_message_accepted(host: Host, body: bytes) -> None:
    queue = host.declare()
    events: list[Mapping[str, object]] = []
    host.broker.kernel.events.subscribe(lambda event: events.append(event.details))
    assert host.broker.publish("q", body) is Verdict.TAKEN
    assert len(queue) == 1
    assert host.broker.kernel.faults.count_by_kind == {"queue feature": 1}
    assert events[0]["part"] == "Recorder"


def test_a_timer_that_fails_is_a_fault(host: Host) -> None:
    host.declare()
    host.made[0].queue.call_later(1, lambda: 1 // 0)
    host.broker.advance(1)
    assert host.broker.kernel.faults.count_by_kind == {"queue feature": 1}


@pytest.mark.parametrize("make", [lambda queue: 1 // 0, lambda queue: object()])
def test_a_queue_works_without_a_feature_that_cannot_be_made(make: Any) -> None:
    host = Host()
    host.use(QueueFeatureType({"acme-limit": QueueSetting(number_fault)}, make))
    queue = host.declare()
    assert host.broker.publish("q", b"drop") is Verdict.TAKEN
    assert len(queue) == 1
    assert host.vhost.queue_features.inert_reason(queue) == "argument 'x-acme-limit': its feature could not be made"


# Changes


def test_a_policy_change_that_does_not_concern_the_feature_leaves_its_object(host: Host) -> None:
    queue = host.declare()
    before = queue.features
    host.policy(max_length=10)
    assert len(host.made) == 1
    assert before[0] in queue.features
    assert host.calls == []


def test_a_new_value_makes_a_new_object_that_inherits(host: Host) -> None:
    host.vhost.declare_queue("q")
    host.policy(acme_limit=7)
    host.policy(acme_limit=8)
    first, second = host.made
    assert second.inherited is first
    assert first.calls == ["close"]


def test_without_the_type_the_queue_keeps_its_messages(host: Host) -> None:
    queue = host.declare()
    host.broker.publish("q", b"a")
    host.use()
    assert (len(queue), queue.features) == (1, ())
    assert host.vhost.queue_features.inert_reason(queue) == "argument 'x-acme-limit': no enabled plugin offers it"
    host.use(host.type)
    assert len(host.made) == 2
    assert host.vhost.queue_features.inert_reason(queue) == ""


def test_a_policy_whose_key_is_not_offered_keeps_its_other_effects(host: Host) -> None:
    queue = host.vhost.declare_queue("q")
    host.policy(acme_limit=7, max_length=1)
    host.use()
    (policy,) = host.vhost.policies
    assert host.vhost.policies.fault(policy) == "no effect: acme-limit (no enabled plugin offers it)"
    assert host.vhost.queue_features.inert_reason(queue) == "key 'acme-limit' of policy p: no enabled plugin offers it"
    later = host.vhost.declare_queue("q2")
    assert later.settings.number("max-length") == 1


def test_a_value_from_before_the_plugin_has_no_effect(host: Host) -> None:
    host.use()
    queue = host.declare(limit=-1)
    host.use(host.type)
    assert host.made == []
    assert host.vhost.queue_features.inert_reason(queue) == "argument 'x-acme-limit': must be above 0"


# The contract kit


def test_the_kit_accepts_a_feature_that_keeps_its_promises() -> None:
    class Counting(QueueFeature):
        def __init__(self, queue: FeatureQueue) -> None:
            self.count = 0

        def on_enqueue(self, message: Message) -> None:
            self.count += 1

    feature_type = QueueFeatureType({"acme-limit": QueueSetting(lambda value: None)}, Counting)
    check_queue_feature(feature_type, {"acme-limit": 1})
    assert feature_type.settings["acme-limit"].check(1) is None


def test_the_kit_finds_faults() -> None:
    def refuse(value: Value) -> str | None:
        return None if value == 1 else "must be 1"

    class Fragile(QueueFeature):
        def __init__(self, queue: FeatureQueue) -> None:
            pass

        def on_enqueue(self, message: Message) -> None:
            message.body.decode()

    fragile = QueueFeatureType({"acme-limit": QueueSetting(refuse)}, Fragile)
    with pytest.raises(AssertionError, match=r"The feature failed for the message .* UnicodeDecodeError"):
        check_queue_feature(fragile, {"acme-limit": 1})
    with pytest.raises(AssertionError, match="refuses 2: must be 1"):
        check_queue_feature(fragile, {"acme-limit": 2})
    with pytest.raises(AssertionError, match="has no setting 'other'"):
        check_queue_feature(fragile, {"other": 2})
    sloppy = QueueFeatureType({"acme-limit": QueueSetting(lambda value: None if value < 9 else "no")}, Fragile)  # type: ignore[operator]
    with pytest.raises(AssertionError, match="The check of 'acme-limit' raised TypeError"):
        check_queue_feature(sloppy, {"acme-limit": 1})
