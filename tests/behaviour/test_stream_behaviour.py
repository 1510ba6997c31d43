"""Streams: declaration, retention of messages, offsets, acknowledgements and filters (R144, R157)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.testing.clock import BEGINNING_MS
from tests.behaviour.scenario import Received, Scenario

STREAM: dict[str, Value] = {"x-queue-type": "stream"}
OF_TYPE = "of queue type rabbit_stream_queue"


def bodies(received: list[Received]) -> list[bytes]:
    return [each.body for each in received]


# Declaration


def unsupported_argument(argument: str, value: Value) -> Any:
    error = f"invalid arg '{argument}' for queue 'q' in vhost '/' {OF_TYPE}"
    return pytest.param({argument: value}, {}, error, id=argument)


def unsupported_property(property: str, **properties: Any) -> Any:
    return pytest.param({}, properties, f"invalid property '{property}' for queue 'q' in vhost '/'", id=property)


def invalid_value(argument: str, value: Value, wrong: str) -> Any:
    error = f"invalid arg '{argument}' for queue 'q' in vhost '/': {wrong}"
    return pytest.param({argument: value}, {}, error, id=f"{argument} {value!r}")


REFUSED = [
    unsupported_property("non-durable", is_durable=False),
    unsupported_property("exclusive-owner", owner="me"),
    unsupported_property("auto-delete", is_auto_delete=True),
    unsupported_argument("x-expires", 1000),
    unsupported_argument("x-message-ttl", 100),
    unsupported_argument("x-dead-letter-exchange", ""),
    unsupported_argument("x-max-length", 5),
    unsupported_argument("x-dead-letter-routing-key", "a"),
    unsupported_argument("x-max-priority", 3),
    unsupported_argument("x-overflow", "drop-head"),
    unsupported_argument("x-queue-mode", "lazy"),
    unsupported_argument("x-queue-version", 3),
    unsupported_argument("x-single-active-consumer", True),
    unsupported_argument("x-delivery-limit", 3),
    unsupported_argument("x-dead-letter-strategy", "at-most-once"),
    unsupported_argument("x-quorum-initial-group-size", 3),
    unsupported_argument("x-max-in-memory-length", 3),
    unsupported_argument("x-message-deduplication", True),
    unsupported_argument("x-delayed-delivery", True),
    invalid_value("x-max-age", "0s", "invalid_max_age"),
    invalid_value("x-max-age", "1x", "invalid_max_age"),
    invalid_value("x-max-age", "7", "invalid_max_age"),
    invalid_value("x-max-age", "7 D", "invalid_max_age"),
    invalid_value("x-max-age", "-1s", "invalid_max_age"),
    invalid_value("x-max-age", "", "invalid_max_age"),
    invalid_value("x-max-age", 7, "{unacceptable_type,signedint}"),
    invalid_value("x-stream-max-segment-size-bytes", -1, "{value_negative,-1}"),
    invalid_value("x-stream-max-segment-size-bytes", "x", '"expected integer, got longstr"'),
    invalid_value("x-max-length-bytes", -1, "{value_negative,-1}"),
    invalid_value("x-initial-cluster-size", 0, "{value_zero,0}"),
    invalid_value("x-queue-leader-locator", "x", "invalid_queue_locator_arg"),
    pytest.param(
        {"x-stream-max-segment-size-bytes": 3_000_000_001},
        {},
        "Exceeded max value for x-stream-max-segment-size-bytes",
        id="a segment too large",
    ),
    pytest.param(
        {"x-stream-filter-size-bytes": 15}, {}, "Invalid value for x-stream-filter-size-bytes", id="a small filter"
    ),
    pytest.param(
        {"x-stream-filter-size-bytes": 256}, {}, "Invalid value for x-stream-filter-size-bytes", id="a large filter"
    ),
]


@pytest.mark.parametrize(("arguments", "properties", "error"), REFUSED)
def test_r144_invalid_declarations_of_a_stream_are_refused(
    scenario: Scenario, arguments: dict[str, Value], properties: dict[str, Any], error: str
) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        scenario.vhost.declare_queue("q", arguments={**STREAM, **arguments}, **{"is_durable": True, **properties})
    assert str(refusal.value) == error


@pytest.mark.parametrize("age", ["7D", "1h", "10s", "5Y", "1M", "1m"])
@pytest.mark.parametrize("locator", ["client-local", "balanced", "least-leaders", "random"])
def test_r144_valid_declarations_of_a_stream_are_accepted(scenario: Scenario, age: str, locator: str) -> None:
    scenario.stream(
        max_age=age,
        queue_leader_locator=locator,
        max_length_bytes=0,
        stream_max_segment_size_bytes=1_000_000,
        stream_filter_size_bytes=255,
        initial_cluster_size=1,
        consumer_timeout=100_000,
    )
    assert scenario.offsets() == []


@pytest.mark.parametrize(
    ("arguments", "again", "error"),
    [
        ({}, {}, None),
        ({"x-max-age": "1D"}, {"x-max-age": "2D"}, "'x-max-age' .* received '2D' but current is '1D'"),
        ({"x-max-age": "1D"}, {}, "'x-max-age' .* received none but current is the value '1D' of type 'longstr'"),
        ({}, {"x-max-length-bytes": 100}, "'x-max-length-bytes' .* received the value '100' of type 'signedint'"),
        ({"x-stream-filter-size-bytes": 16}, {"x-stream-filter-size-bytes": 17}, None),
    ],
)
def test_r50_a_repeated_declaration_of_a_stream_compares_arguments(
    scenario: Scenario, arguments: dict[str, Value], again: dict[str, Value], error: str | None
) -> None:
    scenario.queue("q", STREAM | arguments)
    if error is None:
        scenario.queue("q", STREAM | again)
        return
    with pytest.raises(PreconditionFailed, match=error):
        scenario.queue("q", STREAM | again)


def test_r50_a_stream_cannot_be_declared_as_a_classic_queue(scenario: Scenario) -> None:
    scenario.stream()
    with pytest.raises(PreconditionFailed, match="inequivalent arg 'x-queue-type' for queue 'q' in vhost '/'"):
        scenario.queue("q")


# Messages


def test_r144_reading_removes_nothing(scenario: Scenario) -> None:
    scenario.stream()
    scenario.publish(b"a", b"b")
    assert [bodies(scenario.read()) for _ in range(2)] == [[b"a", b"b"]] * 2
    assert scenario.ready() == 2


def test_r144_messages_and_offsets_survive_a_restart(scenario: Scenario) -> None:
    scenario.stream()
    scenario.publish(b"a", b"b")
    scenario.restart()
    scenario.publish(b"c")
    assert [(each.body, each.headers["x-stream-offset"]) for each in scenario.read()] == [
        (b"a", 0),
        (b"b", 1),
        (b"c", 2),
    ]


def test_r144_a_message_is_unchanged_except_for_its_offset(scenario: Scenario) -> None:
    scenario.stream()
    scenario.publish(b"a", headers={"k": "v"}, content_type="text/plain", correlation_id="c")
    (received,) = scenario.read()
    assert received.headers == {"k": "v", "x-stream-offset": 0}
    assert (received.properties["content_type"], received.properties["correlation_id"]) == ("text/plain", "c")
    assert (received.routing_key, received.redelivered, received.tag) == ("q", False, 1)


def test_r144_the_offset_header_of_a_publisher_is_replaced(scenario: Scenario) -> None:
    scenario.stream()
    scenario.publish(b"a", b"b", headers={"x-stream-offset": "77"})
    assert scenario.offsets() == [0, 1]


def test_r144_messages_do_not_expire(scenario: Scenario) -> None:
    scenario.stream()
    scenario.policy({"message-ttl": 1000, "expires": 1000, "max-length": 1})
    scenario.publish(b"a", expiration="1000")
    scenario.publish(b"b")
    scenario.advance(60_000)
    assert bodies(scenario.read()) == [b"a", b"b"]


def test_r144_a_stream_is_bound_like_any_queue(scenario: Scenario) -> None:
    scenario.stream()
    scenario.exchange("news", "fanout", "q")
    scenario.publish(b"a", exchange="news", to="today")
    assert [(each.body, each.routing_key) for each in scenario.read()] == [(b"a", "today")]


def test_r144_a_recreated_stream_is_empty(scenario: Scenario) -> None:
    scenario.stream()
    scenario.publish(b"a")
    scenario.vhost.delete_queue(scenario.vhost.queue("q"))
    scenario.stream()
    scenario.publish(b"b")
    assert [(each.body, each.headers["x-stream-offset"]) for each in scenario.read()] == [(b"b", 0)]


# Offsets


def ago(**time: float) -> datetime:
    return datetime.fromtimestamp(BEGINNING_MS / 1000, UTC) + timedelta(minutes=4) - timedelta(**time)


STARTS = [
    pytest.param("first", [0, 1, 2, 3], id="first"),
    pytest.param("last", [3], id="last"),
    pytest.param("next", [], id="next"),
    pytest.param(0, [0, 1, 2, 3], id="the offset of the first"),
    pytest.param(2, [2, 3], id="an offset"),
    pytest.param(4, [], id="the offset of the next"),
    pytest.param(1000, [], id="an offset far ahead"),
    pytest.param(-1, [0, 1, 2, 3], id="a negative offset"),
    pytest.param(ago(minutes=2), [2, 3], id="a timestamp"),
    pytest.param(ago(minutes=2, seconds=-1), [3], id="a timestamp between two"),
    pytest.param(ago(hours=1), [0, 1, 2, 3], id="a timestamp before all"),
    pytest.param(ago(hours=-1), [], id="a timestamp in the future"),
    pytest.param("150s", [2, 3], id="an interval"),
    pytest.param("1Y", [0, 1, 2, 3], id="a long interval"),
]


@pytest.mark.parametrize(("start", "expected"), STARTS)
def test_r144_a_consumer_starts_at_the_requested_offset(scenario: Scenario, start: Any, expected: list[int]) -> None:
    scenario.stream()
    for body in (b"0", b"1", b"2", b"3"):
        scenario.publish(body)
        scenario.advance(60_000)
    assert scenario.offsets(offset=start) == expected


def test_r144_without_an_offset_a_consumer_gets_new_messages_only(scenario: Scenario) -> None:
    scenario.stream()
    scenario.publish(b"a")
    reader = scenario.reader()
    scenario.publish(b"b")
    scenario.advance(0)
    assert bodies(list(reader.received())) == [b"b"]


def test_r144_a_consumer_gets_existing_and_new_messages(scenario: Scenario) -> None:
    scenario.stream()
    scenario.publish(b"a")
    reader = scenario.reader(offset="first")
    scenario.publish(b"b")
    scenario.advance(0)
    assert bodies(list(reader.received())) == [b"a", b"b"]


def test_r144_every_consumer_gets_every_message(scenario: Scenario) -> None:
    scenario.stream()
    readers = [scenario.reader(), scenario.reader()]
    scenario.publish(b"a", b"b")
    scenario.advance(0)
    assert [bodies(list(reader.received())) for reader in readers] == [[b"a", b"b"]] * 2


# Acknowledgements


@pytest.mark.parametrize("outcome", DeliveryOutcome)
def test_r144_every_outcome_allows_the_next_delivery_and_requeues_nothing(
    scenario: Scenario, outcome: DeliveryOutcome
) -> None:
    scenario.stream()
    scenario.publish(b"a", b"b", b"c")
    reader = scenario.reader(prefetch=2, offset="first")
    received = list(reader.received())
    assert bodies(received) == [b"a", b"b"]
    reader.settle(received[0], outcome)
    scenario.advance(0)
    assert bodies(list(reader.received())) == [b"c"]
    assert scenario.ready() == 3


def test_r144_a_rejected_message_is_not_dead_lettered(scenario: Scenario) -> None:
    scenario.stream()
    scenario.queue("dead")
    scenario.policy({"dead-letter-exchange": "", "dead-letter-routing-key": "dead"}, pattern="^q$")
    scenario.publish(b"a")
    reader = scenario.reader(offset="first")
    reader.settle(reader.received()[0], DeliveryOutcome.REJECTED)
    assert scenario.ready("dead") == 0


def test_r144_a_named_consumer_resumes_after_its_acknowledged_messages(scenario: Scenario) -> None:
    scenario.stream()
    scenario.publish(b"0", b"1", b"2", b"3")
    reader = scenario.reader(offset="first", consumer="me")
    first, second, third, _ = reader.received()
    for received in (first, third, second):
        reader.settle(received, DeliveryOutcome.ACCEPTED)
    reader.leave()
    assert [each.body for each in scenario.reader(consumer="me").received()] == [b"3"]


def test_r144_unacknowledged_messages_are_delivered_again(scenario: Scenario) -> None:
    scenario.stream()
    scenario.publish(b"0", b"1", b"2")
    reader = scenario.reader(offset="first", consumer="me")
    first, _, third = reader.received()
    reader.settle(first, DeliveryOutcome.ACCEPTED)
    reader.settle(third, DeliveryOutcome.ACCEPTED)
    reader.leave()
    assert [each.body for each in scenario.reader(consumer="me").received()] == [b"1", b"2"]


def test_r144_the_offset_of_a_named_consumer_survives_a_restart(scenario: Scenario) -> None:
    scenario.stream()
    scenario.publish(b"0", b"1", b"2")
    reader = scenario.reader(offset="first", consumer="me")
    reader.settle(reader.received()[0], DeliveryOutcome.ACCEPTED)
    scenario.advance(1000)
    scenario.restart()
    assert [each.body for each in scenario.reader(consumer="me").received()] == [b"1", b"2"]


# Filters

FILTERS = [
    pytest.param({"filter": "eu"}, [b"eu"], id="one value"),
    pytest.param({"filter": ["eu", "us"]}, [b"eu", b"us"], id="several"),
    pytest.param({"filter": "eu", "match_unfiltered": True}, [b"eu", b"none"], id="also messages without a value"),
    pytest.param({"filter": "nowhere"}, [], id="a value without messages"),
    pytest.param({"match_unfiltered": True}, [b"eu", b"us", b"none"], id="no filter"),
]


@pytest.mark.parametrize(("arguments", "expected"), FILTERS)
def test_r144_a_filter_selects_messages_by_value(
    scenario: Scenario, arguments: dict[str, Any], expected: list[bytes]
) -> None:
    scenario.stream()
    scenario.publish(b"eu", headers={"x-stream-filter-value": "eu"})
    scenario.publish(b"us", headers={"x-stream-filter-value": "us"})
    scenario.publish(b"none")
    assert bodies(scenario.read(**arguments)) == expected


# Policies


@pytest.mark.parametrize(
    ("apply_to", "applied"),
    [
        ("streams", {"stream"}),
        ("queues", {"stream", "classic"}),
        ("all", {"stream", "classic"}),
        ("classic_queues", {"classic"}),
        ("quorum_queues", set()),
        ("exchanges", set()),
    ],
)
def test_r139_a_policy_may_apply_to_streams(scenario: Scenario, apply_to: str, applied: set[str]) -> None:
    scenario.stream("stream")
    scenario.queue("classic")
    scenario.policy({"max-age": "1D"}, apply_to=apply_to)
    names = {name for name in ("stream", "classic") if scenario.vhost.queue(name).settings.policy is not None}
    assert names == applied


@pytest.mark.parametrize(
    ("argument", "policy", "expected"),
    [("1D", "2h", "2h"), ("1h", "2D", "1h"), ("60m", "1h", "1h"), (None, "1h", "1h"), ("1h", None, "1h")],
)
def test_r139_the_shorter_age_applies(
    scenario: Scenario, argument: str | None, policy: str | None, expected: str
) -> None:
    queue = scenario.stream() if argument is None else scenario.stream(max_age=argument)
    if policy is not None:
        scenario.policy({"max-age": policy})
    assert queue.settings.text("max-age") == expected


def test_r139_an_operator_policy_may_limit_the_age(scenario: Scenario) -> None:
    queue = scenario.stream(max_age="7D")
    scenario.policy({"max-age": "1D"}, is_operator=True)
    assert (queue.settings["max-age"].value, queue.settings["max-age"].source) == ("1D", "operator policy p")


# Super streams


def test_r144_equal_keys_go_to_the_same_partition(scenario: Scenario) -> None:
    scenario.exchange("s", "x-super-stream", **{"x-super-stream": True})
    for number in range(3):
        scenario.stream(f"s-{number}")
        exchange, stream = scenario.vhost.exchange("s"), scenario.vhost.queue(f"s-{number}")
        scenario.vhost.bind(exchange, stream, str(number), {"x-stream-partition-order": number})
    for key in ("hello1", "hello2", "hello3", "hello4", "hello1"):
        scenario.publish(key.encode(), exchange="s", to=key)
    found = [bodies(scenario.read(f"s-{number}")) for number in range(3)]
    assert found == [[b"hello2"], [b"hello1", b"hello3", b"hello1"], [b"hello4"]]
