"""Schemas of bodies in each language: the columns, the values, and the reasons of refusals."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from gateway.columnar.bodies.body_schema import BodyRefused, BodySchema
from gateway.columnar.bodies.languages import open_schema
from gateway.columnar.encoding.typed_messages import typed_columns
from gateway.columnar.tables.schema_files import SchemaFile
from gateway.kernel.errors import ConfigurationError
from tests.columnar.typed_schemas import (
    AVRO_ORDER,
    JSON_ORDER,
    avro_file,
    encode_avro,
    json_file,
    order_descriptors,
    order_type,
    protobuf_file,
)

AT = datetime(2026, 1, 31, 12, 30, tzinfo=UTC)


def decoded(schema: BodySchema, body: bytes) -> Any:
    """Return a body as it is read back from its columns."""
    return pa.array([schema.decode(body)], schema.kind)[0].as_py(maps_as_pydicts="strict")


def refusal(schema: BodySchema, body: bytes) -> str:
    with pytest.raises(BodyRefused) as refused:
        schema.decode(body)
    return str(refused.value)


def test_a_body_in_json_has_nested_values_lists_maps_times_and_decimals() -> None:
    schema = open_schema(json_file(JSON_ORDER))
    body = {
        "id": 7, "paid": None, "total": 12.5, "weight": 3, "at": "2026-01-31T13:30:00+01:00", "due": "2026-02-28",
        "customer": {"name": "Ann", "age": 5}, "items": [{"sku": "a", "count": 1}, {"sku": "b"}],
        "labels": {"x": "1"}, "note": 5, "parent": {"id": 6}, "type": "new", "other": [1],
    }  # fmt: skip
    assert decoded(schema, json.dumps(body).encode()) == {
        "id": 7, "paid": None, "total": Decimal("12.50"), "weight": 3.0, "at": AT, "due": date(2026, 2, 28),
        "customer": {"name": "Ann", "city": None}, "items": [{"sku": "a", "count": 1}, {"sku": "b", "count": None}],
        "labels": {"x": "1"}, "note": "5", "parent": '{"id":6}', "type": "new",
    }  # fmt: skip


def test_exact_numbers_keep_all_their_digits() -> None:
    schema = open_schema(
        json_file({"type": "object", "properties": {"n": {"type": "number", "format": "decimal(30,12)"}}})
    )
    assert decoded(schema, b'{"n": 123456789012345678.123456789012}') == {
        "n": Decimal("123456789012345678.123456789012")
    }
    assert decoded(schema, b'{"n": 5}') == {"n": Decimal(5)}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": ["integer", "number"]}, pa.float64()),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, pa.int64()),
        ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, pa.string()),
        ({"type": "integer", "format": "int32"}, pa.int32()),
        ({"type": "array"}, pa.string()),
        ({}, pa.string()),
        (True, pa.string()),
        ({"$ref": "#/$defs/missing", "$defs": {"missing": {"type": "boolean"}}}, pa.bool_()),
        ({"type": "string", "format": "email"}, pa.string()),
    ],
)  # fmt: skip
def test_a_part_of_several_types_is_json_text(schema: Any, kind: pa.DataType) -> None:
    assert open_schema(json_file(schema)).kind == kind


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"junk", "not JSON"),
        (b"\xff", "not JSON"),
        (b'{"id": NaN}', "not JSON: NaN"),
        (b"[" * 100_000, "not JSON"),
        (b'{"id":1,"parent":' * 250 + b"1" + b"}" * 250, "nested deeper than 200 levels"),
        (b"{}", '"id" is a required property'),
        (b'{"id": "7"}', r'$.id: "7" is not of type "integer"'),
        (b'{"id": 1, "at": "yesterday"}', "Invalid isoformat string"),
        (b'{"id": 1, "at": "2026-01-31T12:00:00"}', "a time without an offset"),
        (b'{"id": 1, "due": "31.1.2026"}', "Invalid isoformat string"),
        (b'{"id": 1, "type": "other"}', "$.type"),
    ],
)
def test_a_wrong_body_in_json_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    assert reason in refusal(open_schema(json_file(JSON_ORDER)), body)


def avro_order(**values: Any) -> bytes:
    usual = {
        "id": 7, "paid": True, "total": Decimal("12.50"), "weight": 3.0, "at": AT, "due": date(2026, 2, 28),
        "customer": {"name": "Ann"}, "items": [{"a": 1}, {}], "state": "OLD", "code": b"abc", "note": 5, "parent": None,
    }  # fmt: skip
    return encode_avro(AVRO_ORDER, usual | values)


def test_a_body_in_avro_has_the_values_that_its_writer_gave() -> None:
    schema = open_schema(avro_file(AVRO_ORDER))
    parent = {
        "id": 6, "paid": None, "total": Decimal(1), "weight": 0.5, "at": AT, "due": date(2026, 1, 1),
        "customer": {"name": "Bo"}, "items": [], "state": "NEW", "code": b"xyz", "note": None, "parent": None,
    }  # fmt: skip
    found = decoded(schema, avro_order(parent=parent, note="hi"))
    within = json.loads(found.pop("parent"))
    assert (within["id"], within["at"], within["total"], within["code"]) == (
        6,
        "2026-01-31T12:30:00+00:00",
        "1.00",
        "78797a",
    )
    assert found == {
        "id": 7, "paid": True, "total": Decimal("12.50"), "weight": 3.0, "at": AT, "due": date(2026, 2, 28),
        "customer": {"name": "Ann"}, "items": [{"a": 1}, {}], "state": "OLD", "code": b"abc", "note": '"hi"',
    }  # fmt: skip


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "bytes expected"),
        (avro_order()[:-1], "bytes expected"),
        (avro_order() + b"x", "1 bytes follow the value"),
        (b"\xff" * 40, "an integer of more than 64 bits"),
        (b"\x02\x04", "branch 2 of a union with 2 branches"),
        (b"\x02\x02\x02", "the byte 2 is no boolean"),
        (avro_order(at=253_402_300_800_000), "is not in the years 1 to 9999"),
    ],
)
def test_a_wrong_body_in_avro_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    assert reason in refusal(open_schema(avro_file(AVRO_ORDER)), body)


def test_bodies_in_avro_cannot_exhaust_memory_or_the_stack() -> None:
    nulls = open_schema(avro_file({"type": "array", "items": "null"}))
    assert "more items than bytes" in refusal(nulls, b"\x80\x80\x80\x80\x80\x01\x00")
    nested = {"type": "record", "name": "N", "fields": [{"name": "n", "type": ["null", "N"]}]}
    assert "nested deeper than 100 levels" in refusal(open_schema(avro_file(nested)), b"\x02" * 16_384 + b"\x00")


def test_logical_types_of_avro_that_are_not_valid_are_their_plain_type() -> None:
    fields = {
        "a": {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 2},
        "b": {"type": "string", "logicalType": "uuid"},
        "c": {"type": "int", "logicalType": "time-millis"},
        "d": {"type": "long", "logicalType": "local-timestamp-micros"},
    }
    schema = {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}
    kinds = {field.name: field.type for field in open_schema(avro_file(schema)).kind}
    assert kinds == {"a": pa.binary(), "b": pa.string(), "c": pa.time64("us"), "d": pa.timestamp("us")}


def test_a_message_of_protobuf_has_defaults_and_absent_fields() -> None:
    schema = open_schema(protobuf_file())
    order: Any = order_type()(
        id=2**64 - 1, name="Ann", weight=1.5, raw=b"\xff", counts=[1, -2], labels={"a": "b"}, state=1
    )
    order.at.FromDatetime(AT)
    order.parent.name = "Bo"
    assert decoded(schema, order.SerializeToString()) == {
        "id": Decimal(2**64 - 1), "name": "Ann", "weight": 1.5, "raw": b"\xff", "at": AT, "counts": [1, -2],
        "parent": '{"name": "Bo"}', "labels": {"a": "b"}, "state": "OLD", "nick": None,
    }  # fmt: skip
    assert decoded(schema, b"\x48\x05") == {
        "id": Decimal(0), "name": "", "weight": 0.0, "raw": b"", "at": None, "counts": [],
        "parent": None, "labels": {}, "state": "5", "nick": None,
    }  # fmt: skip


def test_a_wrong_body_in_protobuf_is_refused_with_the_reason() -> None:
    schema = open_schema(protobuf_file(message="shop.Order"))
    assert "not a shop.Order" in refusal(schema, b"\x12\x05ab")
    late: Any = order_type()()
    late.at.seconds = 10**12
    assert "is not in the years 1 to 9999" in refusal(schema, late.SerializeToString())
    late.at.seconds, late.at.nanos = 1, -5
    assert "a Timestamp with -5 ns" in refusal(schema, late.SerializeToString())


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (SchemaFile("a.json", "a", "json-schema", "", b"{"), "not a JSON Schema"),
        (json_file({"type": "nothing"}), "not valid at $.type"),
        (json_file({"$ref": "https://example.com/other"}), "not fetched"),
        (json_file({"type": "string", "format": "decimal(50,2)"}), "is not decimal(DIGITS,SCALE) with 1 to 38 digits"),
        (avro_file({"type": "recrod", "name": "R"}), "unknown type"),
        (avro_file({"type": "record", "fields": []}), "is a required field missing"),
        (SchemaFile("a.avsc", "a", "avro", "", b"x"), "not an Avro schema"),
        (SchemaFile("a.binpb", "a", "protobuf", "", b"\xff"), "not a descriptor set"),
        (SchemaFile("a.binpb", "a", "protobuf", "", b""), "the descriptor set is empty"),
        (protobuf_file(message="shop.Other"), "has no message 'shop.Other'"),
        (
            SchemaFile("a.binpb", "a", "protobuf", "", order_descriptors().file[1].SerializeToString()),
            "not a descriptor set",
        ),
    ],
)  # fmt: skip
def test_a_schema_that_is_not_valid_is_one_line(file: SchemaFile, reason: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        open_schema(file)
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_fields_with_names_of_the_envelope_get_a_prefix() -> None:
    kind = pa.struct([("Type", pa.int64()), ("total", pa.int64()), ("body", pa.string())])
    assert typed_columns(kind).names == ["body_Type", "total", "body_body"]
    assert typed_columns(pa.list_(pa.int64())).names == ["value"]


@pytest.mark.parametrize(
    "fields", [["a", "A"], ["type", "body_type"], [""], ["a.b"]], ids=["capitals", "prefix", "empty", "dot"]
)
def test_names_that_readers_of_tables_cannot_tell_apart_are_refused(fields: list[str]) -> None:
    inner = pa.struct([(name, pa.int64()) for name in fields])
    with pytest.raises(ConfigurationError):
        typed_columns(inner)
