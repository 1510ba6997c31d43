"""Bodies in Avro's binary encoding are checked with a schema."""

from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.api import ConfigurationError, Diversion
from gateway.testing import check_interceptor, plain_message
from tests.plugins.validation.rules import AMQP, complaint, validator

PLUGIN = "interceptor-avro"

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": ["null", "string"]},
        {"name": "lines", "type": {"type": "array", "items": {
            "type": "record", "name": "Line", "fields": [
                {"name": "count", "type": "int"},
                {"name": "price", "type": "double"},
                {"name": "size", "type": {"type": "enum", "name": "Size", "symbols": ["S", "M", "L"]}},
            ]}}},
        {"name": "tags", "type": {"type": "map", "values": "bytes"}},
        {"name": "digest", "type": {"type": "fixed", "name": "Digest", "size": 4}},
        {"name": "paid", "type": "boolean"},
        {"name": "weight", "type": "float"},
        {"name": "other", "type": ["null", "Line"]},
        {"name": "parts", "type": {"type": "array", "items": "shop.Order"}},
    ],
}  # fmt: skip

LINES = st.fixed_dictionaries(
    {"count": st.integers(-(2**31), 2**31 - 1), "price": st.floats(), "size": st.sampled_from("SML")}
)


def orders(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({
        "id": st.integers(-(2**63), 2**63 - 1),
        "customer": st.none() | st.text(),
        "lines": st.lists(LINES, max_size=3),
        "tags": st.dictionaries(st.text(max_size=3), st.binary(max_size=3), max_size=3),
        "digest": st.binary(min_size=4, max_size=4),
        "paid": st.booleans(),
        "weight": st.floats(width=32),
        "other": st.none() | LINES,
        "parts": parts,
    })  # fmt: skip


ANY_ORDER = st.recursive(orders(st.just([])), lambda order: orders(st.lists(order, max_size=2)), max_leaves=3)
PARSED = parse_schema(ORDER)
OF_ORDERS = validator(PLUGIN, schema=ORDER)
LINKS: dict[str, Any] = {"type": "record", "name": "L", "fields": [{"name": "next", "type": ["null", "L"]}]}


def encoded(order: Any) -> bytes:
    file = BytesIO()
    schemaless_writer(file, PARSED, order)
    return file.getvalue()


@given(order=ANY_ORDER)
def test_what_the_library_writes_is_valid_whole_and_invalid_in_part(order: Any) -> None:
    body = encoded(order)
    assert complaint(OF_ORDERS, body) == ""
    assert complaint(OF_ORDERS, body[:-1]) != ""
    assert complaint(OF_ORDERS, body + b"\x00") == "1 bytes follow the value"


@given(order=ANY_ORDER, changes=st.dictionaries(st.integers(0, 200), st.integers(0, 255), min_size=1, max_size=4))
@example(order=None, changes={})
def test_a_consumer_can_read_whatever_is_found_valid(order: Any, changes: dict[int, int]) -> None:
    body = bytearray(encoded(order) if order else bytes(20))
    for place, value in changes.items():
        body[place % len(body)] = value
    if complaint(OF_ORDERS, bytes(body)) == "":
        file = BytesIO(body)
        schemaless_reader(file, PARSED, None)
        assert file.tell() == len(body)


@pytest.mark.parametrize(
    ("schema", "body", "fault"),
    [
        ("long", b"", "$: 1 bytes expected, 0 left"),
        ("long", b"\xff" * 10, "$: an integer of more than 64 bits"),
        ("int", b"\xff\xff\xff\xff\x1f", "$: an integer of more than 32 bits"),
        ("string", b"\x06ab", "$: 3 bytes expected, 2 left"),
        ("string", b"\x05ab", "$: a size of -3 bytes"),
        ("string", b"\x04\xff\xfe", "$: a string that is not UTF-8"),
        ("boolean", b"\x02", "$: the byte 2 is no boolean"),
        (["null", "long"], b"\x01\x02", "$: branch -1 of a union with 2 branches"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x01", "$: symbol -1 of an enum with 1 symbols"),
        ({"type": "array", "items": "long"}, b"\x04\x02", "$[1]: 1 bytes expected, 0 left"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\x0f\x00", "$[0]: more items than bytes"),
        ({"type": "map", "values": "long"}, b"\x02\x02a", "$.a: 1 bytes expected, 0 left"),
        ({"type": "map", "values": "long"}, b"\x02\x02\x00", "$.?: 1 bytes expected, 0 left"),
    ],
)
def test_the_reason_has_the_place_of_the_fault(schema: Any, body: bytes, fault: str) -> None:
    assert complaint(validator(PLUGIN, schema=schema), body) == fault


def test_an_array_in_blocks_with_their_size_is_valid() -> None:
    assert complaint(validator(PLUGIN, schema={"type": "array", "items": "long"}), b"\x03\x04\x02\x04\x00") == ""


@pytest.mark.parametrize("depth", [10, 200, 16_000])
def test_deep_bodies_are_refused_without_harm(depth: int) -> None:
    answer = complaint(validator(PLUGIN, schema=LINKS), b"\x02" * depth + b"\x00")
    assert answer.endswith("nested deeper than 100 levels") is (depth > 100)


def test_no_body_takes_more_than_linear_time() -> None:
    nulls = {"type": "array", "items": {"type": "array", "items": "null"}}
    found = validator(PLUGIN, schema=nulls)
    started_s = perf_counter()
    assert complaint(found, b"\xfe\x3f" + b"\xfe\x3f\x00" * 5_000).endswith("more items than bytes")
    assert perf_counter() - started_s < 0.1


def test_the_head_of_the_framing_is_required() -> None:
    # the fingerprint of "null" is that of Avro's specification
    single = validator(PLUGIN, schema="null", framing="single-object")
    assert complaint(single, bytes.fromhex("c3018a8f25cce724dd63")) == ""
    wrong = "it has no head of the framing 'single-object' with c3018a8f25cce724dd63"
    assert complaint(single, bytes.fromhex("c3018a8f25cce724dd64")) == wrong
    confluent = validator(PLUGIN, schema="long", framing="confluent")
    assert [complaint(confluent, body) for body in (b"\0\0\0\0\x07\x02", b"\0", b"\x01\0\0\0\x07\x02")] == [
        "",
        "it has no head of the framing 'confluent' with 00",
        "it has no head of the framing 'confluent' with 00",
    ]
    seven = validator(PLUGIN, schema="long", framing="confluent", schema_id=7)
    assert complaint(seven, b"\0\0\0\0\x07\x02") == ""
    assert complaint(seven, b"\0\0\0\0\x06\x02") == "it has no head of the framing 'confluent' with 0000000007"


def test_a_schema_may_be_a_file_or_text(tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_text('["null", "long"]')
    for rule in ({"schema_file": str(file)}, {"schema": '["null", "long"]'}, {"schema": ["null", "long"]}):
        assert complaint(validator(PLUGIN, **rule), b"\x02\x02") == ""
        assert complaint(validator(PLUGIN, **rule), b"\x04") == "$: branch 2 of a union with 2 branches"


def test_an_invalid_body_is_quarantined() -> None:
    found = validator(PLUGIN, schema="long", quarantine="bad")
    check_interceptor(found)
    decision = found.on_publish(plain_message(body=b""), AMQP)
    assert isinstance(decision, Diversion)
    assert decision.message is not None
    assert decision.message.headers["x-quarantine-reason"] == "the body is invalid: $: 1 bytes expected, 0 left"


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({}, "rule 1: one of 'schema' and 'schema_file' is needed"),
        ({"schema": "long", "schema_file": "x"}, "rule 1: one of 'schema' and 'schema_file' is needed"),
        ({"schema_file": "/none/x.avsc"}, "rule 1: 'schema_file' '/none/x.avsc' cannot be read: No such file"),
        ({"schema": "{"}, "rule 1: the schema is not JSON"),
        ({"schema": "shop.Order"}, "rule 1: the schema is not valid: unknown type shop.Order"),
        ({"schema": {"type": "array"}}, "rule 1: the schema is not valid: the key 'items' is missing"),
        ({"schema": {"type": "record", "name": "R", "fields": "x"}}, "rule 1: the schema is not valid"),
        ({"schema": {"type": "fixed", "name": "F", "size": "x"}}, "rule 1: the schema is not valid"),
        ({"schema": {"type": "enum", "name": "E", "symbols": 5}}, "rule 1: the schema is not valid"),
        ({"schema": "long", "framing": "kafka"}, "framing"),
        ({"schema": "long", "schema_id": 7}, "rule 1: 'schema_id' needs framing = \"confluent\""),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_when_the_plugin_is_enabled(rule: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        validator(PLUGIN, **rule)
