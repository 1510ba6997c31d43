"""Streams: what they keep, from where they are read, and what acknowledgements mean there (R144, R157)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Value
from gateway.kernel.queueing.queue import DeliveryOutcome
from gateway.testing.clock import BEGINNING_MS
from tests.behaviour.edges import Received, Stage

STREAM: dict[str, Value] = {"x-queue-type": "stream"}
OF_TYPE = "of queue type rabbit_stream_queue"


def bodies(received: list[Received]) -> list[bytes]:
    return [each.body for each in received]


# What a stream is


def cannot_have(argument: str, value: Value) -> Any:
    words = f"invalid arg '{argument}' for queue 'q' in vhost '/' {OF_TYPE}"
    return pytest.param({argument: value}, {}, words, id=argument)


def cannot_be(property: str, **properties: Any) -> Any:
    return pytest.param({}, properties, f"invalid property '{property}' for queue 'q' in vhost '/'", id=property)


def makes_no_sense(argument: str, value: Value, wrong: str) -> Any:
    words = f"invalid arg '{argument}' for queue 'q' in vhost '/': {wrong}"
    return pytest.param({argument: value}, {}, words, id=f"{argument} {value!r}")


REFUSED = [
    cannot_be("non-durable", is_durable=False),
    cannot_be("exclusive-owner", owner="me"),
    cannot_be("auto-delete", is_auto_delete=True),
    cannot_have("x-expires", 1000),
    cannot_have("x-message-ttl", 100),
    cannot_have("x-dead-letter-exchange", ""),
    cannot_have("x-max-length", 5),
    cannot_have("x-dead-letter-routing-key", "a"),
    cannot_have("x-max-priority", 3),
    cannot_have("x-overflow", "drop-head"),
    cannot_have("x-queue-mode", "lazy"),
    cannot_have("x-queue-version", 3),
    cannot_have("x-single-active-consumer", True),
    cannot_have("x-delivery-limit", 3),
    cannot_have("x-dead-letter-strategy", "at-most-once"),
    cannot_have("x-quorum-initial-group-size", 3),
    cannot_have("x-max-in-memory-length", 3),
    cannot_have("x-message-deduplication", True),
    cannot_have("x-delayed-delivery", True),
    makes_no_sense("x-max-age", "0s", "invalid_max_age"),
    makes_no_sense("x-max-age", "1x", "invalid_max_age"),
    makes_no_sense("x-max-age", "7", "invalid_max_age"),
    makes_no_sense("x-max-age", "7 D", "invalid_max_age"),
    makes_no_sense("x-max-age", "-1s", "invalid_max_age"),
    makes_no_sense("x-max-age", "", "invalid_max_age"),
    makes_no_sense("x-max-age", 7, "{unacceptable_type,signedint}"),
    makes_no_sense("x-stream-max-segment-size-bytes", -1, "{value_negative,-1}"),
    makes_no_sense("x-stream-max-segment-size-bytes", "x", '"expected integer, got longstr"'),
    makes_no_sense("x-max-length-bytes", -1, "{value_negative,-1}"),
    makes_no_sense("x-initial-cluster-size", 0, "{value_zero,0}"),
    makes_no_sense("x-queue-leader-locator", "x", "invalid_queue_locator_arg"),
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


@pytest.mark.parametrize(("arguments", "properties", "words"), REFUSED)
def test_r144_invalid_declarations_of_a_stream_are_refused(
    stage: Stage, arguments: dict[str, Value], properties: dict[str, Any], words: str
) -> None:
    with pytest.raises(PreconditionFailed) as refusal:
        stage.vhost.declare_queue("q", arguments={**STREAM, **arguments}, **{"is_durable": True, **properties})
    assert str(refusal.value) == words


@pytest.mark.parametrize("age", ["7D", "1h", "10s", "5Y", "1M", "1m"])
@pytest.mark.parametrize("locator", ["client-local", "balanced", "least-leaders", "random"])
def test_r144_valid_declarations_of_a_stream_are_accepted(stage: Stage, age: str, locator: str) -> None:
    stage.stream(
        max_age=age,
        queue_leader_locator=locator,
        max_length_bytes=0,
        stream_max_segment_size_bytes=1_000_000,
        stream_filter_size_bytes=255,
        initial_cluster_size=1,
        consumer_timeout=100_000,
    )
    assert stage.offsets() == []


@pytest.mark.parametrize(
    ("arguments", "again", "words"),
    [
        ({}, {}, None),
        ({"x-max-age": "1D"}, {"x-max-age": "2D"}, "'x-max-age' .* received '2D' but current is '1D'"),
        ({"x-max-age": "1D"}, {}, "'x-max-age' .* received none but current is the value '1D' of type 'longstr'"),
        ({}, {"x-max-length-bytes": 100}, "'x-max-length-bytes' .* received the value '100' of type 'signedint'"),
        ({"x-stream-filter-size-bytes": 16}, {"x-stream-filter-size-bytes": 17}, None),
    ],
)
def test_r50_a_repeated_declaration_of_a_stream_compares_arguments(
    stage: Stage, arguments: dict[str, Value], again: dict[str, Value], words: str | None
) -> None:
    stage.queue("q", STREAM | arguments)
    if words is None:
        stage.queue("q", STREAM | again)
        return
    with pytest.raises(PreconditionFailed, match=words):
        stage.queue("q", STREAM | again)


def test_r50_a_stream_cannot_be_declared_as_a_classic_queue(stage: Stage) -> None:
    stage.stream()
    with pytest.raises(PreconditionFailed, match="inequivalent arg 'x-queue-type' for queue 'q' in vhost '/'"):
        stage.queue("q")


# What a stream keeps


def test_r144_reading_removes_nothing(stage: Stage) -> None:
    stage.stream()
    stage.publish(b"a", b"b")
    assert [bodies(stage.read()) for _ in range(2)] == [[b"a", b"b"]] * 2
    assert stage.ready() == 2


def test_r144_messages_and_offsets_survive_a_restart(stage: Stage) -> None:
    stage.stream()
    stage.publish(b"a", b"b")
    stage.restart()
    stage.publish(b"c")
    assert [(each.body, each.headers["x-stream-offset"]) for each in stage.read()] == [(b"a", 0), (b"b", 1), (b"c", 2)]


def test_r144_a_message_is_unchanged_except_for_its_offset(stage: Stage) -> None:
    stage.stream()
    stage.publish(b"a", headers={"k": "v"}, content_type="text/plain", correlation_id="c")
    (received,) = stage.read()
    assert received.headers == {"k": "v", "x-stream-offset": 0}
    assert (received.properties["content_type"], received.properties["correlation_id"]) == ("text/plain", "c")
    assert (received.routing_key, received.redelivered, received.tag) == ("q", False, 1)


def test_r144_the_offset_header_of_a_publisher_is_replaced(stage: Stage) -> None:
    stage.stream()
    stage.publish(b"a", b"b", headers={"x-stream-offset": "77"})
    assert stage.offsets() == [0, 1]


def test_r144_messages_do_not_expire(stage: Stage) -> None:
    stage.stream()
    stage.policy({"message-ttl": 1000, "expires": 1000, "max-length": 1})
    stage.publish(b"a", expiration="1000")
    stage.publish(b"b")
    stage.advance(60_000)
    assert bodies(stage.read()) == [b"a", b"b"]


def test_r144_a_stream_is_bound_like_any_queue(stage: Stage) -> None:
    stage.stream()
    stage.exchange("news", "fanout", "q")
    stage.publish(b"a", exchange="news", to="today")
    assert [(each.body, each.routing_key) for each in stage.read()] == [(b"a", "today")]


def test_r144_a_recreated_stream_is_empty(stage: Stage) -> None:
    stage.stream()
    stage.publish(b"a")
    stage.vhost.delete_queue(stage.vhost.queue("q"))
    stage.stream()
    stage.publish(b"b")
    assert [(each.body, each.headers["x-stream-offset"]) for each in stage.read()] == [(b"b", 0)]


# From where it is read


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
    pytest.param(-1, [0, 1, 2, 3], id="an offset before all"),
    pytest.param(ago(minutes=2), [2, 3], id="a moment"),
    pytest.param(ago(minutes=2, seconds=-1), [3], id="a moment between two"),
    pytest.param(ago(hours=1), [0, 1, 2, 3], id="a moment before all"),
    pytest.param(ago(hours=-1), [], id="a moment to come"),
    pytest.param("150s", [2, 3], id="an interval"),
    pytest.param("1Y", [0, 1, 2, 3], id="a long interval"),
]


@pytest.mark.parametrize(("start", "seen"), STARTS)
def test_r144_a_consumer_starts_at_the_requested_offset(stage: Stage, start: Any, seen: list[int]) -> None:
    stage.stream()
    for body in (b"0", b"1", b"2", b"3"):
        stage.publish(body)
        stage.advance(60_000)
    assert stage.offsets(offset=start) == seen


def test_r144_without_an_offset_a_consumer_gets_new_messages_only(stage: Stage) -> None:
    stage.stream()
    stage.publish(b"a")
    reader = stage.reader()
    stage.publish(b"b")
    stage.advance(0)
    assert bodies(list(reader.received())) == [b"b"]


def test_r144_a_consumer_gets_existing_and_new_messages(stage: Stage) -> None:
    stage.stream()
    stage.publish(b"a")
    reader = stage.reader(offset="first")
    stage.publish(b"b")
    stage.advance(0)
    assert bodies(list(reader.received())) == [b"a", b"b"]


def test_r144_every_consumer_gets_every_message(stage: Stage) -> None:
    stage.stream()
    readers = [stage.reader(), stage.reader()]
    stage.publish(b"a", b"b")
    stage.advance(0)
    assert [bodies(list(reader.received())) for reader in readers] == [[b"a", b"b"]] * 2


# What acknowledgements mean


@pytest.mark.parametrize("outcome", DeliveryOutcome)
def test_r144_every_outcome_allows_the_next_delivery_and_requeues_nothing(
    stage: Stage, outcome: DeliveryOutcome
) -> None:
    stage.stream()
    stage.publish(b"a", b"b", b"c")
    reader = stage.reader(prefetch=2, offset="first")
    received = list(reader.received())
    assert bodies(received) == [b"a", b"b"]
    reader.settle(received[0], outcome)
    stage.advance(0)
    assert bodies(list(reader.received())) == [b"c"]
    assert stage.ready() == 3


def test_r144_a_rejected_message_is_not_dead_lettered(stage: Stage) -> None:
    stage.stream()
    stage.queue("dead")
    stage.policy({"dead-letter-exchange": "", "dead-letter-routing-key": "dead"}, pattern="^q$")
    stage.publish(b"a")
    reader = stage.reader(offset="first")
    reader.settle(reader.received()[0], DeliveryOutcome.REJECTED)
    assert stage.ready("dead") == 0


def test_r144_a_named_consumer_resumes_after_its_acknowledged_messages(stage: Stage) -> None:
    stage.stream()
    stage.publish(b"0", b"1", b"2", b"3")
    reader = stage.reader(offset="first", consumer="me")
    first, second, third, _ = reader.received()
    for received in (first, third, second):
        reader.settle(received, DeliveryOutcome.ACCEPTED)
    reader.leave()
    assert [each.body for each in stage.reader(consumer="me").received()] == [b"3"]


def test_r144_unacknowledged_messages_are_delivered_again(stage: Stage) -> None:
    stage.stream()
    stage.publish(b"0", b"1", b"2")
    reader = stage.reader(offset="first", consumer="me")
    first, _, third = reader.received()
    reader.settle(first, DeliveryOutcome.ACCEPTED)
    reader.settle(third, DeliveryOutcome.ACCEPTED)
    reader.leave()
    assert [each.body for each in stage.reader(consumer="me").received()] == [b"1", b"2"]


def test_r144_the_offset_of_a_named_consumer_survives_a_restart(stage: Stage) -> None:
    stage.stream()
    stage.publish(b"0", b"1", b"2")
    reader = stage.reader(offset="first", consumer="me")
    reader.settle(reader.received()[0], DeliveryOutcome.ACCEPTED)
    stage.advance(1000)
    stage.restart()
    assert [each.body for each in stage.reader(consumer="me").received()] == [b"1", b"2"]


# Filters

FILTERS = [
    pytest.param({"filter": "eu"}, [b"eu"], id="one value"),
    pytest.param({"filter": ["eu", "us"]}, [b"eu", b"us"], id="several"),
    pytest.param({"filter": "eu", "match_unfiltered": True}, [b"eu", b"none"], id="and what has none"),
    pytest.param({"filter": "nowhere"}, [], id="a value that nobody has"),
    pytest.param({"match_unfiltered": True}, [b"eu", b"us", b"none"], id="no filter"),
]


@pytest.mark.parametrize(("asked", "seen"), FILTERS)
def test_r144_a_filter_selects_messages_by_value(stage: Stage, asked: dict[str, Any], seen: list[bytes]) -> None:
    stage.stream()
    stage.publish(b"eu", headers={"x-stream-filter-value": "eu"})
    stage.publish(b"us", headers={"x-stream-filter-value": "us"})
    stage.publish(b"none")
    assert bodies(stage.read(**asked)) == seen


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
def test_r139_a_policy_may_apply_to_streams(stage: Stage, apply_to: str, applied: set[str]) -> None:
    stage.stream("stream")
    stage.queue("classic")
    stage.policy({"max-age": "1D"}, apply_to=apply_to)
    names = {name for name in ("stream", "classic") if stage.vhost.queue(name).settings.policy is not None}
    assert names == applied


@pytest.mark.parametrize(
    ("argument", "policy", "holds"),
    [("1D", "2h", "2h"), ("1h", "2D", "1h"), ("60m", "1h", "1h"), (None, "1h", "1h"), ("1h", None, "1h")],
)
def test_r139_the_shorter_age_applies(stage: Stage, argument: str | None, policy: str | None, holds: str) -> None:
    queue = stage.stream() if argument is None else stage.stream(max_age=argument)
    if policy is not None:
        stage.policy({"max-age": policy})
    assert queue.settings.text("max-age") == holds


def test_r139_an_operator_policy_may_limit_the_age(stage: Stage) -> None:
    queue = stage.stream(max_age="7D")
    stage.policy({"max-age": "1D"}, is_operator=True)
    assert (queue.settings["max-age"].value, queue.settings["max-age"].source) == ("1D", "operator policy p")


# Super streams


def test_r144_equal_keys_go_to_the_same_partition(stage: Stage) -> None:
    stage.exchange("s", "x-super-stream", **{"x-super-stream": True})
    for number in range(3):
        stage.stream(f"s-{number}")
        exchange, stream = stage.vhost.exchange("s"), stage.vhost.queue(f"s-{number}")
        stage.vhost.bind(exchange, stream, str(number), {"x-stream-partition-order": number})
    for key in ("hello1", "hello2", "hello3", "hello4", "hello1"):
        stage.publish(key.encode(), exchange="s", to=key)
    found = [bodies(stage.read(f"s-{number}")) for number in range(3)]
    assert found == [[b"hello2"], [b"hello1", b"hello3", b"hello1"], [b"hello4"]]
