"""Values as JSON: what is written without the JSON encoder equals what the encoder writes."""

import json

import pytest

from gateway.kernel.journal.entity_codec import decode_entity, encode_entity
from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.journal.records.sessions import RetainedRecord
from gateway.kernel.messages.message import Value
from gateway.kernel.messages.values import dumps_key

TEXTS = ["", "site/1", 'a "quoted" \\ one', "\n\t\x00\x7f", "Zürich 🚂", "\u2028", "$"]
BODIES = [b"", b"\x00", b"ab", bytes(range(256))]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("body", BODIES)
def test_a_retained_record_is_that_of_every_entity(text: str, body: bytes) -> None:
    record = RetainedRecord(text, f"{text}.key", text, "mqtt", body, body[::-1], 1_700_000_000_000)
    assert record.encoded() == Entity.encoded(record)
    assert decode_entity("retained", encode_entity(record)) == record


@pytest.mark.parametrize(
    "key", [("/", text) for text in TEXTS] + [("a",), (), ("a", 1), ("a", None, True), ("\ud800",)]
)
def test_a_key_is_a_list_of_json(key: tuple[Value, ...]) -> None:
    text = json.dumps(list(key), ensure_ascii=False, separators=(",", ":"))
    assert dumps_key(key) == text.encode("utf-8", "surrogatepass")
