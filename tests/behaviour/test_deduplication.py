"""Messages that came before are passed over, by a queue or by an exchange."""

import pytest

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.message import Arguments, Value
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


def test_a_queue_takes_each_key_once_and_confirms_every_time(stage: Stage) -> None:
    deduplicating(stage)
    send(stage, "a", "b", "a", 1, "1", 1, "b")
    assert stage.bodies() == [b"a", b"b", b"1", b"1"]
    send(stage, "a")
    assert stage.bodies() == [], "a key is remembered when its message is gone"


def test_a_message_without_a_key_is_always_new(stage: Stage) -> None:
    deduplicating(stage)
    stage.publish(b"m", b"m")
    assert stage.bodies() == [b"m", b"m"]


def test_without_the_argument_the_header_means_nothing(stage: Stage) -> None:
    stage.queue("q")
    send(stage, "a", "a")
    assert stage.bodies() == [b"a", b"a"]


def test_the_window_is_as_long_as_its_time(stage: Stage) -> None:
    deduplicating(stage, x_cache_ttl=1000)
    send(stage, "a")
    stage.advance(999)
    send(stage, "a")
    stage.advance(1)
    send(stage, "a")
    assert stage.bodies() == [b"a", b"a"]


def test_a_message_may_say_for_how_long_it_is_remembered(stage: Stage) -> None:
    deduplicating(stage, x_cache_ttl=1000)
    send(stage, "a", x_cache_ttl=5000)
    stage.advance(4999)
    send(stage, "a")
    stage.advance(1)
    send(stage, "a")
    assert stage.bodies() == [b"a", b"a"]


def test_the_window_holds_as_many_as_its_size(stage: Stage) -> None:
    deduplicating(stage, x_cache_size=2)
    send(stage, "a", "b", "c", "b", "a", "c")
    assert stage.bodies() == [b"a", b"b", b"c", b"a"]


def test_a_change_of_policy_forgets_nothing(stage: Stage) -> None:
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
def test_an_exchange_passes_over_what_came_before(stage: Stage, type: str, arguments: Arguments) -> None:
    stage.queue("q")
    stage.queue("unroutable")
    exchange = stage.vhost.declare_exchange("once", type, arguments={**arguments, "alternate-exchange": "amq.fanout"})
    stage.vhost.bind(exchange, stage.vhost.queue("q"), "")
    stage.vhost.bind(stage.vhost.exchange("amq.fanout"), stage.vhost.queue("unroutable"), "")
    send(stage, "a", "b", "a", exchange="once")
    assert stage.bodies() == [b"a", b"b"]
    assert stage.ready("unroutable") == 0, "what came before is not unroutable"


def test_a_message_that_reaches_an_exchange_through_another_is_looked_at_too(stage: Stage) -> None:
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
def test_an_exchange_that_makes_no_sense(stage: Stage, type: str, arguments: Arguments, complaint: str) -> None:
    with pytest.raises(PreconditionFailed, match=complaint):
        stage.vhost.declare_exchange("once", type, arguments=arguments)


@pytest.mark.parametrize(
    ("name", "value"),
    [("x-message-deduplication", "yes"), ("x-cache-size", 0), ("x-cache-ttl", 0), ("x-cache-ttl", -1)],
)
def test_a_queue_that_makes_no_sense(stage: Stage, name: str, value: Value) -> None:
    with pytest.raises(PreconditionFailed, match=f"invalid arg '{name}'"):
        stage.queue("q", {name: value})
