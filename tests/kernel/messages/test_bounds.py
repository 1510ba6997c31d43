"""Bounds of names, arguments, bindings and settings are checked first: a refused request changes nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from gateway.kernel.errors import Refused
from gateway.kernel.journal.records.access import TopicPermissionRecord, UserRecord
from gateway.kernel.journal.records.topology import ParameterRecord, PolicyRecord
from gateway.kernel.messages import bounds
from gateway.kernel.messages.message import Value
from gateway.testing import MemoryBroker

SURROGATE = "a\ud800"
LONG_NAME = "n" * (bounds.LONGEST_NAME + 1)
HUGE = 10**400


def nested(levels: int, inner: Value = 1) -> Value:
    value: Value = inner
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


def user(name: str = "u", tags: list[Value] | None = None, **limits: Value) -> UserRecord:
    return UserRecord(name, "", "rabbit_password_hashing_sha256", tags or [], limits)


def policy(name: str = "p", priority: int = 0, **definition: Value) -> PolicyRecord:
    attributes = {key.replace("_", "-"): value for key, value in definition.items()} or {"max-length": 1}
    return PolicyRecord("/", name, False, "x", "all", priority, attributes)


def a_queue(**arguments: Value) -> Callable[[MemoryBroker], object]:
    prefixed = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    return lambda broker: broker.vhost.declare_queue("q", is_durable=True, arguments=prefixed)


def an_exchange(name: str = "x", **arguments: Value) -> Callable[[MemoryBroker], object]:
    prefixed = {key.replace("_", "-"): value for key, value in arguments.items()}
    return lambda broker: broker.vhost.declare_exchange(name, "direct", is_durable=True, arguments=prefixed)


def a_binding(key: str = "k", **arguments: Value) -> Callable[[MemoryBroker], object]:
    def bind(broker: MemoryBroker) -> object:
        vhost = broker.vhost
        return vhost.bind(vhost.exchange("amq.topic"), vhost.queue("there"), key, arguments)

    return bind


def a_policy(*args: Any, **definition: Value) -> Callable[[MemoryBroker], object]:
    return lambda broker: broker.kernel.put_policy(policy(*args, **definition))


def a_parameter(value: Value, name: str = "p", component: str = "c") -> Callable[[MemoryBroker], object]:
    return lambda broker: broker.kernel.parameters.put(ParameterRecord("/", component, name, value))


def a_vhost(name: str, **attributes: Any) -> Callable[[MemoryBroker], object]:
    return lambda broker: broker.kernel.declare_vhost(name, **attributes)


def a_user(*args: Any, **limits: Value) -> Callable[[MemoryBroker], object]:
    return lambda broker: broker.kernel.directory.put_user(user(*args, **limits))


REFUSED = [
    #            request                                             part of the error
    pytest.param(lambda b: b.vhost.declare_queue(LONG_NAME), "queue name of 256 bytes", id="queue: long name"),
    pytest.param(lambda b: b.vhost.declare_queue("ü" * 128), "queue name of 256 bytes", id="queue: bytes, not letters"),
    pytest.param(lambda b: b.vhost.declare_queue(SURROGATE), "lone surrogate", id="queue: lone surrogate"),
    pytest.param(an_exchange(LONG_NAME), "exchange name of 256 bytes", id="exchange: long name"),
    pytest.param(an_exchange(SURROGATE), "lone surrogate", id="exchange: lone surrogate"),
    pytest.param(an_exchange(alternate_exchange=LONG_NAME), "'alternate-exchange'", id="exchange: long alternate"),
    pytest.param(an_exchange(any=nested(65)), "'any'", id="exchange: deep argument"),
    pytest.param(
        a_queue(dead_letter_exchange="", dead_letter_routing_key="k" * 70_000),
        "'x-dead-letter-routing-key' for queue 'q' in vhost '/': 70000 bytes",
        id="queue: a key no record holds",
    ),
    pytest.param(a_queue(dead_letter_exchange="", dead_letter_routing_key=SURROGATE), "surrogate", id="queue: bad key"),
    pytest.param(a_queue(dead_letter_exchange=LONG_NAME), "'x-dead-letter-exchange'", id="queue: long exchange"),
    pytest.param(a_queue(any=nested(330)), "'x-any' for queue 'q'", id="queue: deep argument"),
    pytest.param(a_queue(any=nested(bounds.MOST_LEVELS + 1)), "more than 64 tables", id="queue: a level too deep"),
    pytest.param(a_queue(any=HUGE), "more than 64 bits", id="queue: huge number"),
    pytest.param(a_queue(max_length=HUGE), "more than 64 bits", id="queue: huge limit"),
    pytest.param(a_queue(any=[HUGE]), "more than 64 bits", id="queue: huge number inside"),
    pytest.param(a_queue(any=SURROGATE), "lone surrogate", id="queue: lone surrogate inside"),
    pytest.param(a_queue(any={SURROGATE: 1}), "lone surrogate", id="queue: lone surrogate as a name"),
    pytest.param(a_queue(any={LONG_NAME: 1}), "256 bytes", id="queue: long name inside"),
    pytest.param(a_queue(**{LONG_NAME: 1}), "its name has 258 bytes", id="queue: long name of an argument"),
    pytest.param(a_queue(any="x" * 131_073), "bytes are more than 131072", id="queue: large argument"),
    pytest.param(a_queue(any=[1] * 10_001), "10002 values are more than 10000", id="queue: many values"),
    pytest.param(a_binding("k" * 65_536), "routing key of 65536 bytes", id="binding: long key"),
    pytest.param(a_binding("." * 1_024), "routing key of 1025 words", id="binding: many words"),
    pytest.param(a_binding(SURROGATE), "lone surrogate", id="binding: lone surrogate"),
    pytest.param(a_binding(any=nested(330)), "'any' for binding from exchange 'amq.topic'", id="binding: deep"),
    pytest.param(a_policy(LONG_NAME), "policy name of 256 bytes", id="policy: long name"),
    pytest.param(a_policy(SURROGATE), "lone surrogate", id="policy: lone surrogate"),
    pytest.param(a_policy("p", HUGE), "priority is a number of more than 64 bits", id="policy: huge priority"),
    *[
        pytest.param(a_policy(**{key: HUGE}), "more than 64 bits", id=f"policy: huge {key}")
        for key in ("message_ttl", "expires", "max_length", "max_length_bytes", "delivery_limit", "consumer_timeout",
                    "cache_size", "cache_ttl", "initial_cluster_size", "max_in_memory_length")
    ],
    *[
        pytest.param(a_policy(**{key: 315_360_000_001}), "315360000001 is not a valid", id=f"policy: {key}")
        for key in ("message_ttl", "expires", "consumer_timeout", "cache_ttl")
    ],
    *[
        pytest.param(a_policy(**{key: 2**63}), f"{2**63} is not a valid", id=f"policy: {key}")
        for key in ("max_length", "max_length_bytes", "delivery_limit", "cache_size", "initial_cluster_size")
    ],
    pytest.param(a_policy(retry_delays=[HUGE]), "more than 64 bits", id="policy: huge delay"),
    pytest.param(a_policy(dead_letter_routing_key="k" * 256), "not a valid dead letter routing key", id="policy: key"),
    pytest.param(a_policy(dead_letter_routing_key=SURROGATE), "lone surrogate", id="policy: lone surrogate in a key"),
    pytest.param(a_policy(dead_letter_exchange=LONG_NAME), "not a valid dead letter exchange", id="policy: exchange"),
    pytest.param(a_policy(alternate_exchange=LONG_NAME), "not a valid alternate exchange", id="policy: alternate"),
    pytest.param(a_policy(any=nested(330)), "'any' for policy 'p' in vhost '/'", id="policy: deep"),
    pytest.param(a_parameter(nested(330)), "invalid value of parameter 'p': more than 64", id="parameter: deep"),
    pytest.param(a_parameter("x" * 1_048_577), "bytes are more than 1048576", id="parameter: large"),
    pytest.param(a_parameter([1] * 100_001), "values are more than 100000", id="parameter: many values"),
    pytest.param(a_parameter(SURROGATE), "lone surrogate", id="parameter: lone surrogate"),
    pytest.param(a_parameter(1, name=LONG_NAME), "parameter name of 256 bytes", id="parameter: long name"),
    pytest.param(a_parameter(1, component=SURROGATE), "lone surrogate", id="parameter: component"),
    pytest.param(a_vhost(LONG_NAME), "vhost name of 256 bytes", id="vhost: long name"),
    pytest.param(a_vhost(SURROGATE), "lone surrogate", id="vhost: lone surrogate"),
    pytest.param(a_vhost("v", description="d" * 4_097), "description of 4097 bytes", id="vhost: long description"),
    pytest.param(a_vhost("v", tags=[LONG_NAME]), "tag name of 256 bytes", id="vhost: long tag"),
    pytest.param(a_vhost("v", plugins={"p": {"s": nested(330)}}), "'p' for vhost 'v'", id="vhost: deep plugin setting"),
    pytest.param(lambda b: b.kernel.limit_vhost("/", {"max-queues": HUGE}), "64 bits", id="vhost: huge limit"),
    pytest.param(lambda b: b.kernel.limit_vhost("/", {"max-queues": "7"}), "a number", id="vhost: no number"),
    pytest.param(lambda b: b.kernel.limit_vhost("/", {"max-x": 7}), "Unrecognised terms", id="vhost: unknown limit"),
    pytest.param(a_user(LONG_NAME), "user name of 256 bytes", id="user: long name"),
    pytest.param(a_user(SURROGATE), "lone surrogate", id="user: lone surrogate"),
    pytest.param(a_user("u", [LONG_NAME]), "tag name of 256 bytes", id="user: long tag"),
    pytest.param(a_user("u", ["t"] * 10_001), "10002 values", id="user: many tags"),
    pytest.param(a_user("u", [], max=1), "Unrecognised terms", id="user: unknown limit"),
    pytest.param(
        lambda b: b.kernel.directory.put_topic_permission(TopicPermissionRecord("/", "there", LONG_NAME, "", "")),
        "exchange name of 256 bytes",
        id="topic permission: long exchange",
    ),
]  # fmt: skip


@pytest.fixture
def broker() -> MemoryBroker:
    broker = MemoryBroker()
    broker.vhost.declare_queue("there", is_durable=True)
    broker.kernel.directory.put_user(user("there"))
    return broker


def entities_of(broker: MemoryBroker) -> list[str]:
    broker.commit()
    return sorted(repr(change) for change in broker.store.reopened().recover())


@pytest.mark.parametrize(("ask", "reason"), REFUSED)
def test_a_request_out_of_bounds_is_refused_with_its_reason_and_stores_nothing(
    broker: MemoryBroker, ask: Callable[[MemoryBroker], object], reason: str
) -> None:
    before = entities_of(broker)
    with pytest.raises(Refused) as refusal:
        ask(broker)
    assert reason in str(refusal.value)
    assert len(str(refusal.value)) < 1_000
    assert entities_of(broker) == before


ACCEPTED = [
    pytest.param(lambda b: b.vhost.declare_queue("n" * 255, is_durable=True), id="queue: longest name"),
    pytest.param(a_queue(dead_letter_exchange="e" * 255, dead_letter_routing_key="k" * 255), id="queue: longest key"),
    pytest.param(a_queue(any=nested(bounds.MOST_LEVELS)), id="queue: deepest argument"),
    pytest.param(a_queue(any="x" * 131_000), id="queue: largest argument"),
    pytest.param(a_queue(max_length=bounds.LARGEST_COUNT, any=bounds.LARGEST_INTEGER), id="queue: largest number"),
    pytest.param(a_queue(message_ttl=bounds.LONGEST_MS, expires=bounds.LONGEST_MS), id="queue: longest times"),
    pytest.param(a_queue(queue_type="stream", max_age="999999999Y"), id="stream: longest age"),
    pytest.param(a_binding("k" * 65_535), id="binding: longest key"),
    pytest.param(a_binding("." * 1_023), id="binding: most words"),
    pytest.param(a_policy(message_ttl=bounds.LONGEST_MS, expires=bounds.LONGEST_MS), id="policy: longest times"),
    pytest.param(a_policy(max_length=bounds.LARGEST_COUNT, delivery_limit=2**63 - 1), id="policy: largest counts"),
    pytest.param(a_parameter(nested(bounds.MOST_LEVELS, "x" * 1_000_000)), id="parameter: largest"),
    pytest.param(a_user("u" * 255, ["t" * 255], **{"max-channels": -1}), id="user: longest"),
    pytest.param(a_vhost("v" * 255, description="d" * 4_096), id="vhost: longest"),
]


@pytest.mark.parametrize("ask", ACCEPTED)
def test_a_request_just_within_bounds_is_accepted_and_survives_a_restart(
    broker: MemoryBroker, ask: Callable[[MemoryBroker], object]
) -> None:
    before = len(entities_of(broker))
    ask(broker)
    broker.vhost.declare_queue("x", is_durable=True)  # matches the policy, if there is one
    after = entities_of(broker)
    assert len(after) == before + 2
    again = broker.crashed()
    again.advance(3600)
    assert entities_of(again)[:3] == after[:3]


def test_a_stored_policy_that_is_now_out_of_bounds_has_no_effect() -> None:
    broker = MemoryBroker()
    broker.kernel.install_policy(policy(message_ttl=HUGE))
    broker.vhost.declare_queue("x")
    broker.publish("x", b"stays")
    assert len(broker.vhost.queue("x")) == 1
    assert "64 bits" in broker.vhost.policies.fault(broker.kernel.policies["/", "p", False])
