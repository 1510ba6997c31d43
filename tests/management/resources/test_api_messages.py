"""Messages over HTTP: publishing, fetching, purging."""

from typing import Any

import pytest

from tests.management.console import Console

PROPERTIES = {
    "delivery_mode": 2,
    "headers": {"h": 1, "l": [1, "a"], "t": {"x": True}},
    "timestamp": 1_700_000_000,
    "content_type": "text/plain",
    "priority": 4,
    "expiration": "600000",
}


@pytest.fixture
def stocked(console: Console) -> Console:
    console.put("/queues/%2F/q", {"durable": True})
    for body in ("one", "two", "three"):
        assert publish(console, body, PROPERTIES) == {"routed": True}
    return console


def publish(console: Console, payload: str, properties: Any, encoding: str = "string", key: str = "q") -> Any:
    fields = {"properties": properties, "routing_key": key, "payload": payload, "payload_encoding": encoding}
    return console.post("/exchanges/%2F/amq.default/publish", fields)


def fetch(console: Console, count: int, ackmode: str, **options: Any) -> Any:
    return console.post("/queues/%2F/q/get", {"count": count, "ackmode": ackmode, "encoding": "auto"} | options)


def test_a_message_is_fetched_as_it_was_published(stocked: Console) -> None:
    assert fetch(stocked, 1, "ack_requeue_true") == [
        {
            "payload_bytes": 3,
            "redelivered": False,
            "exchange": "",
            "routing_key": "q",
            "message_count": 2,
            "properties": PROPERTIES,
            "payload": "one",
            "payload_encoding": "string",
        }
    ]


OUTCOMES = [
    ("ack_requeue_true", [("one", True), ("two", True), ("three", False)]),
    ("reject_requeue_true", [("one", True), ("two", True), ("three", False)]),
    ("ack_requeue_false", [("three", False)]),
    ("reject_requeue_false", [("three", False)]),
]


@pytest.mark.parametrize(("ackmode", "left"), OUTCOMES)
def test_fetched_messages_are_settled_by_ackmode(stocked: Console, ackmode: str, left: list[tuple[str, bool]]) -> None:
    assert [each["payload"] for each in fetch(stocked, 2, ackmode)] == ["one", "two"]
    assert [(each["payload"], each["redelivered"]) for each in fetch(stocked, 9, "ack_requeue_false")] == left
    assert fetch(stocked, 1, "ack_requeue_false") == []


def test_a_rejected_message_is_dead_lettered(console: Console) -> None:
    console.put("/queues/%2F/dead", {})
    dead_lettering = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    console.put("/queues/%2F/q", {"arguments": dead_lettering})
    publish(console, "x", {})
    fetch(console, 1, "reject_requeue_false")
    assert console.get("/queues/%2F/dead")["messages"] == 1


PAYLOADS = [
    ("aGk=", "base64", "auto", ("hi", "string")),
    ("//8=", "base64", "auto", ("//8=", "base64")),
    ("hi", "string", "base64", ("aGk=", "base64")),
    ("é", "string", "auto", ("é", "string")),
    ("", "string", "auto", ("", "string")),
]


@pytest.mark.parametrize(("payload", "written_as", "asked_for", "shown"), PAYLOADS)
def test_bodies_may_be_text_or_base64(
    console: Console, payload: str, written_as: str, asked_for: str, shown: tuple[str, str]
) -> None:
    console.put("/queues/%2F/q", {})
    publish(console, payload, {}, written_as)
    (fetched,) = fetch(console, 1, "ack_requeue_false", encoding=asked_for)
    assert (fetched["payload"], fetched["payload_encoding"]) == shown


def test_bodies_may_be_truncated(stocked: Console) -> None:
    (fetched,) = fetch(stocked, 1, "ack_requeue_true", truncate=2)
    assert (fetched["payload"], fetched["payload_bytes"]) == ("on", 3)


WRONG: list[Any] = [
    ({"properties": None, "payload_encoding": None}, "[{key_missing,properties},{key_missing,payload_encoding}]"),
    ({"payload_encoding": "zz"}, ["unsupported_encoding", "zz"]),
    ({"payload": "!!", "payload_encoding": "base64"}, ["not_base64", "!!"]),
    ({"properties": {"delivery_mode": "a"}}, ["not_int", "delivery_mode"]),
    ({"properties": {"user_id": "zz"}},
     "406 PRECONDITION_FAILED - user_id property set to 'zz' but authenticated user was 'guest'"),
    ({"properties": {"headers": {"CC": "a"}}},
     '406 PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"CC",longstr}'),
    ({"properties": {"headers": {"BCC": ["k" * 300]}}},
     "406 PRECONDITION_FAILED - invalid message: a key in CC or BCC is too long: "
     "300 bytes are more than 255"),
    ({"payload": "x" * 1001}, "406 PRECONDITION_FAILED - message size 1001 is larger than configured max size 1000"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "reason"), WRONG)
def test_an_invalid_publish_is_refused(console: Console, changes: dict[str, Any], reason: object) -> None:
    fields: dict[str, Any] = {"properties": {}, "routing_key": "q", "payload": "x", "payload_encoding": "string"}
    fields = {name: value for name, value in (fields | changes).items() if value is not None}
    answer = console.ask("POST", "/exchanges/%2F/amq.default/publish", fields)
    assert answer.result == (400, {"error": "bad_request", "reason": reason})


EXCHANGES = [
    ("none", "404 NOT_FOUND - no exchange 'none' in vhost '/'"),
    (
        "amq.rabbitmq.trace",
        "403 ACCESS_REFUSED - cannot publish to internal exchange 'amq.rabbitmq.trace' in vhost '/'",
    ),
]


@pytest.mark.parametrize(("exchange", "reason"), EXCHANGES)
def test_a_publish_to_an_unknown_or_internal_exchange_is_refused(console: Console, exchange: str, reason: str) -> None:
    fields = {"properties": {}, "routing_key": "q", "payload": "x", "payload_encoding": "string"}
    answer = console.ask("POST", f"/exchanges/%2F/{exchange}/publish", fields)
    assert answer.result == (400, {"error": "bad_request", "reason": reason})


@pytest.mark.parametrize(
    ("properties", "error"),
    [
        pytest.param(
            {"expiration": "1" * 26, "delivery_mode": 2}, "'expiration' must be milliseconds", id="expiration"
        ),
        pytest.param({"correlation_id": "x" * 256}, "'correlation_id' has 256 bytes", id="short string"),
        pytest.param({"timestamp": -1}, "'timestamp' is before 1970", id="timestamp"),
        pytest.param({"headers": {"large": 2**63}}, "'large' is an integer of more than 64 bits", id="integer"),
    ],
)
def test_an_undeliverable_message_is_refused(stocked: Console, properties: Any, error: str) -> None:
    fields = {"properties": properties, "routing_key": "q", "payload": "x", "payload_encoding": "string"}
    answer = stocked.ask("POST", "/exchanges/%2F/amq.default/publish", fields)
    assert (answer.status, answer.result[1]["error"]) == (400, "bad_request")
    assert error in answer.result[1]["reason"]
    assert [message["payload"] for message in fetch(stocked, 9, "ack_requeue_true")] == ["one", "two", "three"]


def test_an_unroutable_message_is_not_routed(console: Console) -> None:
    assert publish(console, "x", {}, key="nowhere") == {"routed": False}


FETCHES = [
    ({"count": 1}, 400, "[{key_missing,ackmode},{key_missing,encoding}]"),
    ({"count": 1, "ackmode": "ack_requeue_true", "encoding": "zz"}, 400,
     "Unsupported encoding. Please use auto or base64."),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "status", "reason"), FETCHES)
def test_an_invalid_fetch_is_refused(console: Console, fields: object, status: int, reason: str) -> None:
    console.put("/queues/%2F/q", {})
    answer = console.ask("POST", "/queues/%2F/q/get", fields)
    assert answer.result == (status, {"error": "bad_request", "reason": reason})


def test_a_purge_deletes_the_ready_messages(stocked: Console) -> None:
    stocked.delete("/queues/%2F/q/contents")
    assert stocked.get("/queues/%2F/q")["messages"] == 0


def test_the_aliveness_test_leaves_an_empty_queue(console: Console) -> None:
    assert console.get("/aliveness-test/%2F") == {"status": "ok"}
    assert console.get("/queues/%2F/aliveness-test")["messages"] == 0


def test_cc_and_bcc_route_copies_and_bcc_is_removed(console: Console) -> None:
    for name in ("q", "second", "third"):
        console.put(f"/queues/%2F/{name}", {"durable": True})
    headers = {"CC": ["second", 7], "BCC": ["third"], "h": 1}
    assert publish(console, "one", {"delivery_mode": 2, "headers": headers}, key="nowhere") == {"routed": True}
    options = {"count": 5, "ackmode": "ack_requeue_false", "encoding": "auto"}
    for name, count in (("q", 0), ("second", 1), ("third", 1)):
        fetched = console.post(f"/queues/%2F/{name}/get", options)
        assert [each["properties"]["headers"] for each in fetched] == [{"CC": ["second", 7], "h": 1}] * count
