"""Deduplication by queues and exchanges.

Rules: R122.
"""

import pytest

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.journal.changes import Put
from gateway.kernel.messages.message import Arguments, Value
from tests.behaviour.scenario import Scenario


def send(scenario: Scenario, *keys: Value, exchange: str = "", **headers: Value) -> None:
    """Publish a message for each key, with the key as its body."""
    for key in keys:
        others = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {"x-deduplication-header": key, **others}
        assert scenario.publish(str(key).encode(), exchange=exchange, headers=sent) == [True]


def declare_deduplicating(scenario: Scenario, **arguments: Value) -> None:
    scenario.queue(
        "q", {"x-message-deduplication": True, **{name.replace("_", "-"): value for name, value in arguments.items()}}
    )


def test_a_queue_accepts_each_key_once_and_confirms_every_publish(scenario: Scenario) -> None:
    declare_deduplicating(scenario)
    send(scenario, "a", "b", "a", 1, "1", 1, "b")
    assert scenario.bodies() == [b"a", b"b", b"1", b"1"]
    send(scenario, "a")
    assert scenario.bodies() == [], "a key is kept after its message was consumed"


def test_a_message_without_a_key_is_always_new(scenario: Scenario) -> None:
    declare_deduplicating(scenario)
    scenario.publish(b"m", b"m")
    assert scenario.bodies() == [b"m", b"m"]


def test_without_the_argument_the_header_is_ignored(scenario: Scenario) -> None:
    scenario.queue("q")
    send(scenario, "a", "a")
    assert scenario.bodies() == [b"a", b"a"]


def test_a_key_is_kept_for_its_time_to_live(scenario: Scenario) -> None:
    declare_deduplicating(scenario, x_cache_ttl=1000)
    send(scenario, "a")
    scenario.advance(999)
    send(scenario, "a")
    scenario.advance(1)
    send(scenario, "a")
    assert scenario.bodies() == [b"a", b"a"]


def test_a_message_may_set_the_time_to_live_of_its_key(scenario: Scenario) -> None:
    declare_deduplicating(scenario, x_cache_ttl=1000)
    send(scenario, "a", x_cache_ttl=5000)
    scenario.advance(4999)
    send(scenario, "a")
    scenario.advance(1)
    send(scenario, "a")
    assert scenario.bodies() == [b"a", b"a"]


def test_the_cache_keeps_as_many_keys_as_its_size(scenario: Scenario) -> None:
    declare_deduplicating(scenario, x_cache_size=2)
    send(scenario, "a", "b", "c", "b", "a", "c")
    assert scenario.bodies() == [b"a", b"b", b"c", b"a"]


def test_a_change_of_policy_keeps_the_cache(scenario: Scenario) -> None:
    declare_deduplicating(scenario)
    send(scenario, "a")
    scenario.policy({"max-length": 10})
    send(scenario, "a")
    assert scenario.bodies() == [b"a"]


EXCHANGES = [
    pytest.param("fanout", {"x-message-deduplication": True}, id="any type with the argument"),
    pytest.param("x-message-deduplication", {"x-cache-size": 10}, id="the type of RabbitMQ's plugin"),
]


@pytest.mark.parametrize(("type", "arguments"), EXCHANGES)
def test_an_exchange_drops_repeated_messages(scenario: Scenario, type: str, arguments: Arguments) -> None:
    scenario.queue("q")
    scenario.queue("unroutable")
    exchange = scenario.vhost.declare_exchange(
        "once", type, arguments={**arguments, "alternate-exchange": "amq.fanout"}
    )
    scenario.vhost.bind(exchange, scenario.vhost.queue("q"), "")
    scenario.vhost.bind(scenario.vhost.exchange("amq.fanout"), scenario.vhost.queue("unroutable"), "")
    send(scenario, "a", "b", "a", exchange="once")
    assert scenario.bodies() == [b"a", b"b"]
    assert scenario.ready("unroutable") == 0, "a repeated message does not count as unroutable"


def test_a_message_routed_through_another_exchange_is_deduplicated_too(scenario: Scenario) -> None:
    scenario.queue("q")
    once = scenario.vhost.declare_exchange("once", "fanout", arguments={"x-message-deduplication": True})
    scenario.vhost.bind(once, scenario.vhost.queue("q"), "")
    scenario.vhost.bind(scenario.vhost.exchange("amq.fanout"), once, "")
    send(scenario, "a", "a", exchange="amq.fanout")
    assert scenario.bodies() == [b"a"]


REFUSED = [
    pytest.param("x-message-deduplication", {}, "'x-cache-size' must be an integer greater than 0", id="no size"),
    pytest.param("fanout", {"x-message-deduplication": 1}, "must be a boolean", id="not a boolean"),
    pytest.param("fanout", {"x-cache-size": 0}, "'x-cache-size' must be", id="an empty cache"),
    pytest.param("fanout", {"x-cache-ttl": "1"}, "'x-cache-ttl' must be", id="a time as a string"),
    pytest.param("fanout", {"x-cache-persistence": "tape"}, "must be either 'memory' or 'disk'", id="no such memory"),
]


@pytest.mark.parametrize(("type", "arguments", "error"), REFUSED)
def test_invalid_arguments_of_an_exchange_are_refused(
    scenario: Scenario, type: str, arguments: Arguments, error: str
) -> None:
    with pytest.raises(PreconditionFailed, match=error):
        scenario.vhost.declare_exchange("once", type, arguments=arguments)


@pytest.mark.parametrize(
    ("name", "value"),
    [("x-message-deduplication", "yes"), ("x-cache-size", 0), ("x-cache-ttl", 0), ("x-cache-ttl", -1)],
)
def test_invalid_arguments_of_a_queue_are_refused(scenario: Scenario, name: str, value: Value) -> None:
    with pytest.raises(PreconditionFailed, match=f"invalid arg '{name}'"):
        scenario.queue("q", {name: value})


def test_a_cache_survives_a_restart_in_order(scenario: Scenario) -> None:
    declare_deduplicating(scenario, x_cache_size=3)
    send(scenario, "a", "b", "c", "d")
    assert scenario.bodies() == [b"a", b"b", b"c", b"d"]
    scenario.restart()
    send(scenario, "b", "c", "d", "a")
    assert scenario.bodies() == [b"a"], "the latest three are kept"
    scenario.restart()
    send(scenario, "b")
    assert scenario.bodies() == [b"b"], "the oldest was evicted"


def test_the_time_to_live_of_a_key_continues_across_a_restart(scenario: Scenario) -> None:
    declare_deduplicating(scenario, x_cache_ttl=5000)
    send(scenario, "a")
    scenario.advance(3000)
    assert scenario.bodies() == [b"a"]
    scenario.restart()
    scenario.advance(1999)
    send(scenario, "a")
    assert scenario.bodies() == []
    scenario.advance(1)
    send(scenario, "a")
    assert scenario.bodies() == [b"a"]


@pytest.mark.parametrize("is_by_policy", [False, True], ids=["argument", "policy"])
def test_a_cache_survives_whether_set_by_argument_or_policy(scenario: Scenario, is_by_policy: bool) -> None:
    if is_by_policy:
        scenario.queue("q")
        scenario.policy({"message-deduplication": True}, apply_to="queues")
    else:
        declare_deduplicating(scenario)
    send(scenario, "a")
    assert scenario.bodies() == [b"a"]
    scenario.restart()
    send(scenario, "a", "b")
    assert scenario.bodies() == [b"b"]


@pytest.mark.parametrize(("type", "arguments"), EXCHANGES)
def test_the_cache_of_an_exchange_survives_a_restart(scenario: Scenario, type: str, arguments: Arguments) -> None:
    scenario.queue("q")
    once = scenario.vhost.declare_exchange("once", type, is_durable=True, arguments=arguments)
    scenario.vhost.bind(once, scenario.vhost.queue("q"), "")
    send(scenario, "a", exchange="once")
    assert scenario.bodies() == [b"a"]
    scenario.restart()
    send(scenario, "a", "b", exchange="once")
    assert scenario.bodies() == [b"b"]


def stored_keys(scenario: Scenario) -> int:
    """Return the number of keys in the store."""
    scenario.advance(0)
    return sum(
        1 for change in scenario.gateway.store.recover() if isinstance(change, Put) and change.entity.kind == "seen"
    )


def test_deleting_a_queue_deletes_its_cache(scenario: Scenario) -> None:
    declare_deduplicating(scenario)
    send(scenario, "a", "b")
    assert stored_keys(scenario) == 2
    scenario.vhost.delete_queue(scenario.vhost.queue("q"))
    declare_deduplicating(scenario)
    send(scenario, "a")
    assert scenario.bodies() == [b"a"]
    assert stored_keys(scenario) == 1
    scenario.restart()
    send(scenario, "a", "b")
    assert scenario.bodies() == [b"b"]


def test_deleting_an_exchange_deletes_its_cache(scenario: Scenario) -> None:
    scenario.queue("q")
    arguments = {"x-message-deduplication": True}
    scenario.vhost.declare_exchange("once", "fanout", is_durable=True, arguments=arguments)
    scenario.vhost.bind(scenario.vhost.exchange("once"), scenario.vhost.queue("q"), "")
    send(scenario, "a", exchange="once")
    assert stored_keys(scenario) == 1
    scenario.vhost.delete_exchange("once")
    assert stored_keys(scenario) == 0


def test_removing_the_policy_deletes_the_cache(scenario: Scenario) -> None:
    scenario.queue("q")
    policy = scenario.policy({"message-deduplication": True}, apply_to="queues")
    send(scenario, "a")
    scenario.gateway.broker.remove_policy(policy)
    assert stored_keys(scenario) == 0


def test_keys_of_a_transient_queue_are_not_stored(scenario: Scenario) -> None:
    scenario.queue("q", {"x-message-deduplication": True}, is_durable=False)
    send(scenario, "a")
    assert stored_keys(scenario) == 0


def test_a_message_rejected_by_a_queue_can_be_sent_again(scenario: Scenario) -> None:
    scenario.queue("q", {"x-max-length": 1, "x-overflow": "reject-publish", "x-message-deduplication": True})
    send(scenario, "a")
    headers = {"x-deduplication-header": "b"}
    assert scenario.publish(b"b", headers=headers) == [False]
    assert scenario.bodies() == [b"a"]
    assert scenario.publish(b"b", headers=headers) == [True]
    assert scenario.bodies() == [b"b"]


def test_a_message_rejected_behind_a_deduplicating_exchange_can_be_sent_again(scenario: Scenario) -> None:
    scenario.queue("q", {"x-max-length": 1, "x-overflow": "reject-publish"})
    once = scenario.vhost.declare_exchange("once", "fanout", arguments={"x-message-deduplication": True})
    scenario.vhost.bind(once, scenario.vhost.queue("q"), "")
    send(scenario, "a", exchange="once")
    headers = {"x-deduplication-header": "b"}
    assert scenario.publish(b"b", exchange="once", headers=headers) == [False]
    assert scenario.bodies() == [b"a"]
    assert scenario.publish(b"b", exchange="once", headers=headers) == [True]
    assert scenario.bodies() == [b"b"]
