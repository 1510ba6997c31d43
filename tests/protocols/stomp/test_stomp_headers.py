"""Headers of a SEND in the kernel, in other protocols, and in a MESSAGE."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Message, Properties, Value
from gateway.kernel.messages.native_header import native_header
from gateway_stomp.encoder import Encoder
from gateway_stomp.header import STOMP, StompHeader
from gateway_stomp.translate import headers_of, properties_of
from gateway_stomp.versions import Version
from tests.protocols.stomp.frame_reader import FrameReader

EVERYTHING = {
    "content-type": "text/plain",
    "content-encoding": "gzip",
    "persistent": "true",
    "priority": "7",
    "correlation-id": "c",
    "reply-to": "/queue/r",
    "expiration": "1000",
    "amqp-message-id": "m",
    "timestamp": "1700000000",
    "type": "t",
    "user-id": "guest",
    "app-id": "app",
    "colour": "red",
}


def test_each_header_is_translated_to_its_property() -> None:
    assert properties_of(EVERYTHING, {}) == Properties(
        content_type="text/plain",
        content_encoding="gzip",
        headers={"colour": "red"},
        delivery_mode=2,
        priority=7,
        correlation_id="c",
        reply_to="/queue/r",
        expiration="1000",
        message_id="m",
        timestamp=datetime.fromtimestamp(1_700_000_000, UTC),
        type="t",
        user_id="guest",
        app_id="app",
    )


def test_each_property_is_translated_back_to_its_header() -> None:
    assert headers_of(properties_of(EVERYTHING, {})) == EVERYTHING


def test_a_transient_message_has_no_persistent_header() -> None:
    assert properties_of({"persistent": "false"}, {}).delivery_mode is None
    assert "persistent" not in headers_of(Properties(delivery_mode=1))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("text", "text"),
        (5, "5"),
        (-(2**40), "-1099511627776"),
        (True, None),
        (1.5, None),
        (b"bytes", None),
        (Decimal(1), None),
        (["list"], None),
        ({"table": 1}, None),
        (None, None),
        ("a\0b", None),
    ],
)
def test_text_and_whole_numbers_of_a_headers_table_are_translated(value: object, told: str | None) -> None:
    assert headers_of(Properties(headers={"x": value})).get("x") == told  # type: ignore[dict-item]  # any Value


@pytest.mark.parametrize("name", ["destination", "message-id", "subscription", "ack", "redelivered", "content-length"])
def test_a_message_cannot_forge_headers_of_the_frame(name: str) -> None:
    assert headers_of(Properties(headers={name: "x"})) == {}


def test_a_property_takes_precedence_over_a_header_of_the_same_name() -> None:
    assert headers_of(Properties(type="t", headers={"type": "forged"})) == {"type": "t"}


@pytest.mark.parametrize(
    ("reply_to", "told"), [("q", "/reply-queue/q"), ("/queue/q", "/queue/q"), ("/topic/t", "/topic/t")]
)
def test_a_reply_to_queue_name_becomes_a_destination(reply_to: str, told: str) -> None:
    assert headers_of(Properties(reply_to=reply_to)) == {"reply-to": told}


def test_x_death_is_encoded_as_json() -> None:
    death: dict[str, Value] = {"count": 1, "queue": "q", "time": datetime.fromtimestamp(5, UTC), "routing-keys": ["k"]}
    headers = headers_of(Properties(headers={"x-death": [death], "x-first-death-queue": "q"}))
    assert headers["x-death"] == '[{"count":1,"queue":"q","time":5,"routing-keys":["k"]}]'
    assert headers["x-first-death-queue"] == "q"


@pytest.mark.parametrize(
    "headers",
    [
        {"priority": "high"},
        {"priority": "256"},
        {"priority": "-1"},
        {"expiration": "soon"},
        {"expiration": "-1"},
        {"expiration": "315360000001"},
        {"timestamp": "now"},
        {"timestamp": "9" * 18},
        {"timestamp": "-1"},
        {"correlation-id": "x" * 256},
    ],
    ids=lambda headers: next(iter(headers.items()), ("", ""))[0] + " " + next(iter(headers.values()))[:12],
)
def test_invalid_properties_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(PreconditionFailed):
        STOMP.sent(headers)


def test_the_header_has_the_kernels_fields() -> None:
    header = STOMP.sent(EVERYTHING)
    assert (header.is_persistent, header.priority, header.expiration_ms, header.user_id) == (True, 7, 1000, "guest")
    assert not header.is_ordinary
    assert STOMP.sent({"a": "b"}).is_ordinary


def test_headers_of_the_frame_are_not_stored() -> None:
    of_frame = {"destination": "/queue/q", "receipt": "1", "transaction": "t", "content-length": "3"}
    assert STOMP.sent({**of_frame, "a": "b"}).raw == b"a:b\n"


def test_equal_headers_are_cached() -> None:
    assert STOMP.sent({"a": "b"}) is STOMP.sent({"a": "b", "receipt": "1"})


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=10)


@given(headers=st.dictionaries(TEXT.filter(bool), TEXT, max_size=5))
def test_any_headers_are_stored_and_restored(headers: dict[str, str]) -> None:
    names = {"priority", "expiration", "timestamp"}
    header = STOMP.sent({name: value for name, value in headers.items() if name not in names})
    assert STOMP.header(header.raw).properties == header.properties
    assert STOMP.properties(header.stored_raw) == header.properties


def test_an_edit_changes_only_the_given_headers() -> None:
    header = STOMP.sent({"a": "1", "b": "2", "expiration": "10"})
    edited = header.edited({"x-death": [{"queue": "q"}], "a": 5}, without=("c",), drops_expiration=True)
    assert edited.properties.headers == {"b": "2", "x-death": [{"queue": "q"}], "a": 5}
    assert edited.properties.expiration is None
    again = edited.edited({"c": "3"}, without=("x-death",))
    assert again.properties.headers == {"b": "2", "a": 5, "c": "3"}


def shown(header: StompHeader, version: Version) -> dict[str, str]:
    encoder = Encoder(version, "amq.topic")
    message = Message("", "q", header, b"hi")
    data = encoder.beginning("0", "", "q") + b"T_0@@s@@1" + encoder.rest(message, redelivered=False)
    reader = FrameReader(version.value)
    (frame,) = reader.feed(data)
    assert reader.is_complete
    assert frame.body == b"hi"
    return frame.headers


@pytest.mark.parametrize("version", Version)
def test_a_message_has_the_published_headers_in_the_subscribers_version(version: Version) -> None:
    sent = {"a": "b", "c": "x:y\\z", "persistent": "true"} | ({} if version is Version.V10 else {"d": "1\n2"})
    told = shown(STOMP.sent(sent), version)
    frame = {"subscription": "0", "destination": "/queue/q", "message-id": "T_0@@s@@1", "redelivered": "false"}
    assert told == {**frame, **sent, "content-length": "2"}


def test_a_newline_is_replaced_by_visible_characters_in_1_0() -> None:
    assert shown(STOMP.sent({"d": "1\n2"}), Version.V10)["d"] == "1\\n2"


def test_one_encoding_serves_all_subscribers() -> None:
    encoder = Encoder(Version.V12, "amq.topic")
    message = Message("", "q", native_header(Properties()), b"hi")
    assert encoder.rest(message, False) is encoder.rest(message, False)
    assert encoder.rest(message, True) != encoder.rest(message, False)
