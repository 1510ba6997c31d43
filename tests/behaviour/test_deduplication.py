"""Messages that came before are passed over, by a queue or by an exchange.

Rules: R122.
"""

import pytest

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.journal.changes import Put
from gateway.kernel.messages.message import Arguments, Value
from tests.behaviour.edges import Stage


def send(stage: Stage, *keys: Value, exchange: str = "", **headers: Value) -> None:
    """Publish a message for each key, its body the key in words."""
    for key in keys:
        said = {"x-deduplication-header": key, **{name.replace("_", "-"): value for name, value in headers.items()}}
        assert stage.publish(str(key).encode(), exchange=exchange, headers=said) == [True]


def deduplicating(stage: Stage, **arguments: Value) -> None:
    stage.queue(
        "q", {"x-message-deduplication": True, **{name.replace("_", "-"): value for name, value in arguments.items()}}
    )


def test_a_queue_accepts_each_key_once_and_confirms_every_publish(stage: Stage) -> None:
    deduplicating(stage)
    send(stage, "a", "b", "a", 1, "1", 1, "b")
    assert stage.bodies() == [b"a", b"b", b"1", b"1"]
    send(stage, "a")
    assert stage.bodies() == [], "a key is remembered when its message is gone"


def test_a_message_without_a_key_is_always_new(stage: Stage) -> None:
    deduplicating(stage)
    stage.publish(b"m", b"m")
    assert stage.bodies() == [b"m", b"m"]


def test_without_the_argument_the_header_is_ignored(stage: Stage) -> None:
    stage.queue("q")
    send(stage, "a", "a")
    assert stage.bodies() == [b"a", b"a"]


def test_a_key_is_kept_for_its_time_to_live(stage: Stage) -> None:
    deduplicating(stage, x_cache_ttl=1000)
    send(stage, "a")
    stage.advance(999)
    send(stage, "a")
    stage.advance(1)
    send(stage, "a")
    assert stage.bodies() == [b"a", b"a"]


def test_a_message_may_set_the_time_to_live_of_its_key(stage: Stage) -> None:
    deduplicating(stage, x_cache_ttl=1000)
    send(stage, "a", x_cache_ttl=5000)
    stage.advance(4999)
    send(stage, "a")
    stage.advance(1)
    send(stage, "a")
    assert stage.bodies() == [b"a", b"a"]


def test_the_cache_keeps_as_many_keys_as_its_size(stage: Stage) -> None:
    deduplicating(stage, x_cache_size=2)
    send(stage, "a", "b", "c", "b", "a", "c")
    assert stage.bodies() == [b"a", b"b", b"c", b"a"]


def test_a_change_of_policy_keeps_the_cache(stage: Stage) -> None:
    deduplicating(stage)
    send(stage, "a")
    stage.policy({"max-length": 10})
    send(stage, "a")
    assert stage.bodies() == [b"a"]


EXCHANGES = [
    pytest.param("fanout", {"x-message-deduplication": True}, id="any type with the argument"),
    pytest.param("x-message-deduplication", {"x-cache-size": 10}, id="the type of RabbitMQ's plugin"),
]


@pytest.mark.parametrize(("type", "arguments"), EXCHANGES)
def test_an_exchange_drops_repeated_messages(stage: Stage, type: str, arguments: Arguments) -> None:
    stage.queue("q")
    stage.queue("unroutable")
    exchange = stage.vhost.declare_exchange("once", type, arguments={**arguments, "alternate-exchange": "amq.fanout"})
    stage.vhost.bind(exchange, stage.vhost.queue("q"), "")
    stage.vhost.bind(stage.vhost.exchange("amq.fanout"), stage.vhost.queue("unroutable"), "")
    send(stage, "a", "b", "a", exchange="once")
    assert stage.bodies() == [b"a", b"b"]
    assert stage.ready("unroutable") == 0, "what came before is not unroutable"


def test_a_message_routed_through_another_exchange_is_deduplicated_too(stage: Stage) -> None:
    stage.queue("q")
    once = stage.vhost.declare_exchange("once", "fanout", arguments={"x-message-deduplication": True})
    stage.vhost.bind(once, stage.vhost.queue("q"), "")
    stage.vhost.bind(stage.vhost.exchange("amq.fanout"), once, "")
    send(stage, "a", "a", exchange="amq.fanout")
    assert stage.bodies() == [b"a"]


REFUSED = [
    pytest.param("x-message-deduplication", {}, "'x-cache-size' must be an integer greater than 0", id="no size"),
    pytest.param("fanout", {"x-message-deduplication": 1}, "must be a boolean", id="not a boolean"),
    pytest.param("fanout", {"x-cache-size": 0}, "'x-cache-size' must be", id="nothing to remember"),
    pytest.param("fanout", {"x-cache-ttl": "1"}, "'x-cache-ttl' must be", id="a time in words"),
]


@pytest.mark.parametrize(("type", "arguments", "complaint"), REFUSED)
def test_invalid_arguments_of_an_exchange_are_refused(
    stage: Stage, type: str, arguments: Arguments, complaint: str
) -> None:
    with pytest.raises(PreconditionFailed, match=complaint):
        stage.vhost.declare_exchange("once", type, arguments=arguments)


@pytest.mark.parametrize(
    ("name", "value"),
    [("x-message-deduplication", "yes"), ("x-cache-size", 0), ("x-cache-ttl", 0), ("x-cache-ttl", -1)],
)
def test_invalid_arguments_of_a_queue_are_refused(stage: Stage, name: str, value: Value) -> None:
    with pytest.raises(PreconditionFailed, match=f"invalid arg '{name}'"):
        stage.queue("q", {name: value})


def test_a_cache_survives_a_restart_in_order(stage: Stage) -> None:
    deduplicating(stage, x_cache_size=3)
    send(stage, "a", "b", "c", "d")
    assert stage.bodies() == [b"a", b"b", b"c", b"d"]
    stage.restart()
    send(stage, "b", "c", "d", "a")
    assert stage.bodies() == [b"a"], "the newest three are known"
    stage.restart()
    send(stage, "b")
    assert stage.bodies() == [b"b"], "the oldest gave way to the new one"


def test_the_time_to_live_of_a_key_continues_across_a_restart(stage: Stage) -> None:
    deduplicating(stage, x_cache_ttl=5000)
    send(stage, "a")
    stage.advance(3000)
    assert stage.bodies() == [b"a"]
    stage.restart()
    stage.advance(1999)
    send(stage, "a")
    assert stage.bodies() == []
    stage.advance(1)
    send(stage, "a")
    assert stage.bodies() == [b"a"]


@pytest.mark.parametrize("is_by_policy", [False, True], ids=["argument", "policy"])
def test_a_cache_survives_whether_set_by_argument_or_policy(stage: Stage, is_by_policy: bool) -> None:
    if is_by_policy:
        stage.queue("q")
        stage.policy({"message-deduplication": True}, apply_to="queues")
    else:
        deduplicating(stage)
    send(stage, "a")
    assert stage.bodies() == [b"a"]
    stage.restart()
    send(stage, "a", "b")
    assert stage.bodies() == [b"b"]


@pytest.mark.parametrize(("type", "arguments"), EXCHANGES)
def test_the_cache_of_an_exchange_survives_a_restart(stage: Stage, type: str, arguments: Arguments) -> None:
    stage.queue("q")
    once = stage.vhost.declare_exchange("once", type, is_durable=True, arguments=arguments)
    stage.vhost.bind(once, stage.vhost.queue("q"), "")
    send(stage, "a", exchange="once")
    assert stage.bodies() == [b"a"]
    stage.restart()
    send(stage, "a", "b", exchange="once")
    assert stage.bodies() == [b"b"]


def seen(stage: Stage) -> int:
    """How many keys the store holds."""
    stage.advance(0)
    return sum(
        1 for change in stage.gateway.store.recover() if isinstance(change, Put) and change.entity.kind == "seen"
    )


def test_deleting_a_queue_deletes_its_cache(stage: Stage) -> None:
    deduplicating(stage)
    send(stage, "a", "b")
    assert seen(stage) == 2
    stage.vhost.delete_queue(stage.vhost.queue("q"))
    deduplicating(stage)
    send(stage, "a")
    assert stage.bodies() == [b"a"]
    assert seen(stage) == 1
    stage.restart()
    send(stage, "a", "b")
    assert stage.bodies() == [b"b"]


def test_deleting_an_exchange_deletes_its_cache(stage: Stage) -> None:
    stage.queue("q")
    arguments = {"x-message-deduplication": True}
    stage.vhost.declare_exchange("once", "fanout", is_durable=True, arguments=arguments)
    stage.vhost.bind(stage.vhost.exchange("once"), stage.vhost.queue("q"), "")
    send(stage, "a", exchange="once")
    assert seen(stage) == 1
    stage.vhost.delete_exchange("once")
    assert seen(stage) == 0


def test_removing_the_policy_deletes_the_cache(stage: Stage) -> None:
    stage.queue("q")
    policy = stage.policy({"message-deduplication": True}, apply_to="queues")
    send(stage, "a")
    stage.gateway.broker.remove_policy(policy)
    assert seen(stage) == 0


def test_keys_of_a_transient_queue_are_not_stored(stage: Stage) -> None:
    stage.queue("q", {"x-message-deduplication": True}, is_durable=False)
    send(stage, "a")
    assert seen(stage) == 0


def test_a_message_rejected_by_a_queue_can_be_sent_again(stage: Stage) -> None:
    stage.queue("q", {"x-max-length": 1, "x-overflow": "reject-publish", "x-message-deduplication": True})
    send(stage, "a")
    said = {"x-deduplication-header": "b"}
    assert stage.publish(b"b", headers=said) == [False]
    assert stage.bodies() == [b"a"]
    assert stage.publish(b"b", headers=said) == [True]
    assert stage.bodies() == [b"b"]


def test_a_message_rejected_behind_a_deduplicating_exchange_can_be_sent_again(stage: Stage) -> None:
    stage.queue("q", {"x-max-length": 1, "x-overflow": "reject-publish"})
    once = stage.vhost.declare_exchange("once", "fanout", arguments={"x-message-deduplication": True})
    stage.vhost.bind(once, stage.vhost.queue("q"), "")
    send(stage, "a", exchange="once")
    said = {"x-deduplication-header": "b"}
    assert stage.publish(b"b", exchange="once", headers=said) == [False]
    assert stage.bodies() == [b"a"]
    assert stage.publish(b"b", exchange="once", headers=said) == [True]
    assert stage.bodies() == [b"b"]
