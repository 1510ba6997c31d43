"""The columns of messages from every protocol."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from gateway.columnar.encoding.rows import MOST_BYTES, MOST_ROWS
from gateway.columnar.encoding.schema import MESSAGES
from gateway.kernel.messages.death_records import DeathReason, headers_after_death
from gateway.kernel.messages.message import Header, Message, Properties, Value
from gateway.kernel.messages.native_header import NATIVE, native_header
from gateway.kernel.messages.values import loads
from gateway_mqtt.translation.header import mqtt_header
from gateway_mqtt.translation.topics import LOSSY, REVERSIBLE
from gateway_stomp.header import STOMP
from tests.columnar.streams import MIDNIGHT_MS, NOON_MS, amqp, chunk, message, pieces, rows

NOON = datetime.fromtimestamp(NOON_MS / 1000, UTC)


def row(header: Header, routing_key: str = "key") -> dict[str, Any]:
    """Return the columns of one message."""
    [found] = rows([chunk([Message("exchange", routing_key, header, b"body")])])
    return found


def headers_of(headers: dict[str, Value]) -> dict[str, Any]:
    return row(native_header(Properties(headers=headers)))


# ---- Position and time
# ----------------------------------------------------------------------------------------------


def test_a_row_has_the_position_and_store_time_of_its_message() -> None:
    second = rows([chunk([message(b"one"), message(b"two")], first=7)])[1]
    assert (second["vhost"], second["queue"], second["partition"], second["offset"]) == ("/", "q", 0, 8)
    assert second["timestamp"] == datetime.fromtimestamp((NOON_MS + 1) / 1000, UTC)
    assert (second["exchange"], second["routing_key"], second["body"]) == ("exchange", "key", b"two")


def test_rows_of_several_chunks_are_consecutive_and_limited_to_the_requested_offsets() -> None:
    chunks = [chunk([message()] * 5, first=0) + chunk([message()] * 5, first=5), chunk([message()] * 5, first=10)]
    assert [row["offset"] for row in rows(chunks)] == list(range(15))
    assert [row["offset"] for row in rows(chunks, 3, 12)] == list(range(3, 12))
    assert rows(chunks, 15, 20) == []


# ---- Envelopes, by protocol
# -----------------------------------------------------------------------------------------


def test_each_amqp_property_has_a_column() -> None:
    properties = Properties(
        content_type="text/plain",
        content_encoding="gzip",
        headers={"n": 5, "device": "d1"},
        delivery_mode=2,
        priority=7,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        timestamp=datetime(2013, 1, 1, 6, tzinfo=UTC),
        type="t",
        user_id="u",
        app_id="a",
    )
    found = row(amqp(properties))
    assert found["protocol"] == "amqp-0-9-1"
    names = ("content_type", "content_encoding", "correlation_id", "reply_to", "message_id")
    assert [found[name] for name in names] == ["text/plain", "gzip", "c", "r", "m"]
    assert [found[name] for name in ("type", "user_id", "app_id")] == ["t", "u", "a"]
    assert (found["priority"], found["delivery_mode"], found["expiration"]) == (7, 2, "60000")
    assert found["message_timestamp"] == datetime(2013, 1, 1, 6, tzinfo=UTC)
    assert found["headers"] == {"n": "5", "device": "d1"}
    assert (found["client_id"], found["mqtt"], found["x_death"], found["redelivered"]) == (None, None, None, False)


def test_headers_hidden_from_amqp_consumers_are_in_no_column() -> None:
    found = row(amqp(Properties(headers={"BCC": ["secret"], "open": "yes"})))
    assert found["headers"] == {"open": "yes"}
    assert "secret" not in found["headers_json"]


@pytest.mark.parametrize(
    ("mapping", "topic"),
    [(REVERSIBLE, "home/room.1/temp"), (LOSSY, "home/room/1/temp")],
    ids=["reversible", "lossy"],
)
def test_an_mqtt_message_has_its_topic_client_and_qos(mapping: Any, topic: str) -> None:
    header = mqtt_header(1, True, False, "sensor-1", b"", mapping=mapping)
    found = row(header, mapping.routing_key("home/room.1/temp"))
    assert found["mqtt"] == {"topic": topic, "qos": 1, "retain": True}
    assert (found["client_id"], found["protocol"], found["delivery_mode"]) == ("sensor-1", "mqtt", 2)


def test_a_stomp_message_has_its_headers() -> None:
    found = row(STOMP.sent({"persistent": "true", "colour": "red", "content-type": "text/css"}))
    assert (found["protocol"], found["content_type"], found["delivery_mode"]) == ("stomp", "text/css", 2)
    assert found["headers"]["colour"] == "red"


def test_a_header_that_cannot_be_decoded_leaves_its_columns_null() -> None:
    class Unknown(type(NATIVE)):  # type: ignore[misc]  # a format of a gateway yet to come
        name = "future"

    header = native_header(Properties(message_id="m"))
    header.format = Unknown()
    found = row(header)
    assert (found["protocol"], found["body"], found["message_id"], found["headers"]) == ("future", b"body", None, {})


# ---- Headers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("text", "text"),
        (12, "12"),
        (True, "true"),
        (False, "false"),
        (None, None),
        (1.5, "1.5"),
        (Decimal("1.20"), "1.20"),
        (b"text", "text"),
        (b"\xff\x00", "ff00"),
        (datetime(2024, 2, 29, tzinfo=UTC), "2024-02-29T00:00:00+00:00"),
        ([1, "two"], '[1,"two"]'),
        ({"a": {"b": 1}}, '{"a":{"b":1}}'),
        ("lone \ud800", "lone \\ud800"),
    ],
    ids=repr,
)
def test_the_header_map_holds_text(value: Value, text: str | None) -> None:
    assert headers_of({"h": value})["headers"] == {"h": text}


def test_the_json_of_headers_restores_every_value() -> None:
    headers: dict[str, Value] = {
        "text": "ä€", "lone": "\ud800", "bytes": b"\x00\xff", "number": 2**40, "real": float("inf"), "none": None,
        "decimal": Decimal("1.10"), "time": datetime(2024, 1, 1, tzinfo=UTC), "list": [1, {"$": "x"}], "truth": True,
    }  # fmt: skip
    assert loads(headers_of(headers)["headers_json"].encode()) == headers


def test_a_dead_letter_has_its_x_death_entries() -> None:
    first = native_header(
        Properties(headers=headers_after_death(message(), "orders", DeathReason.EXPIRED, 1_700_000_000))
    )
    again = headers_after_death(Message("dlx", "k2", first, b""), "retry", DeathReason.REJECTED, 1_700_000_060)
    newest, oldest = headers_of(again)["x_death"]
    assert newest == {
        "queue": "retry", "reason": "rejected", "count": 1, "exchange": "dlx", "routing_keys": ["k2"],
        "time": datetime.fromtimestamp(1_700_000_060, UTC),
    }  # fmt: skip
    assert (oldest["queue"], oldest["reason"], oldest["routing_keys"]) == ("orders", "expired", ["key"])


@pytest.mark.parametrize("nonsense", ["text", 5, ["text", 5], [{}], [{"count": "x", "time": 1, "routing-keys": "k"}]])
def test_a_malformed_x_death_header_is_tolerated(nonsense: Value) -> None:
    deaths = headers_of({"x-death": nonsense})["x_death"]
    assert all(value is None for death in deaths for value in death.values())


# ---- Batches --------------------------------------------------------------------------------------------------------


def test_messages_with_equal_and_different_envelopes_keep_their_order() -> None:
    kinds = [amqp(Properties(message_id=str(number))) for number in (1, 2, 3)]
    order = [0, 0, 1, 2, 1, 0, 2]
    found = rows([chunk([message(str(index).encode(), kinds[kind]) for index, kind in enumerate(order)])])
    assert [row["message_id"] for row in found] == [str(kind + 1) for kind in order]
    assert [row["body"] for row in found] == [str(index).encode() for index in range(len(order))]


def test_a_batch_is_bounded_in_rows_and_bytes() -> None:
    assert [piece.batch.num_rows for piece in pieces([chunk([message(b"")] * (MOST_ROWS + 1))])] == [MOST_ROWS, 1]
    large = [message(bytes(MOST_BYTES // 2))] * 5
    assert [piece.batch.num_rows for piece in pieces([chunk(large)])] == [2, 2, 1]


def test_a_batch_ends_at_midnight() -> None:
    before, after = pieces([chunk([message()] * 4, at_ms=MIDNIGHT_MS - 2)])
    assert (before.first, before.end, before.last_ms) == (0, 2, MIDNIGHT_MS - 1)
    assert (after.first, after.end, after.first_ms) == (2, 4, MIDNIGHT_MS)


def test_every_batch_has_exactly_the_schema() -> None:
    by_mqtt = message(header=mqtt_header(0, False, False, "c", b""))
    for piece in pieces([chunk([message()] * 3), chunk([by_mqtt], first=3)]):
        assert piece.batch.schema.equals(MESSAGES, check_metadata=True)
        piece.batch.validate(full=True)
