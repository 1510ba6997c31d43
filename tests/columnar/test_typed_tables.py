"""Typed tables: rows by schema, dead letters, evolution, and the same rows for each reader."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gateway.columnar.encoding.worker import Worker
from gateway.columnar.iceberg.catalogue import open_catalogue
from gateway.columnar.iceberg.compaction import compact
from gateway.columnar.iceberg.schema_check import schema_faults
from gateway.columnar.tables.schema_files import SchemaFile
from gateway.worker_process.framing import Frame
from tests.columnar.iceberg_tables import address_in, query, request, rows_in, table_in
from tests.columnar.streams import MIDNIGHT_MS, NOON_MS, chunk, message
from tests.columnar.typed_schemas import (
    AVRO_ORDER,
    JSON_ORDER,
    avro_file,
    encode_avro,
    json_file,
    order_type,
    protobuf_file,
)

AT = datetime(2026, 1, 31, 12, 30, tzinfo=UTC)


class Orders:
    """The typed table ``orders`` and the worker that writes it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.address = address_in(directory)
        self.worker = Worker()
        self.next = 0

    def file(self, schema: SchemaFile, *bodies: bytes, at_ms: int = NOON_MS) -> dict[str, Any]:
        """File one segment; return the answer."""
        chunks = chunk([message(body) for body in bodies], first=self.next, at_ms=at_ms)
        head = request(self.address, self.next, self.next + len(bodies), schema=schema.as_head())
        answer = self.worker.answer(Frame(head, chunks)).head
        if "error" not in answer:
            self.next += len(bodies)
        return answer

    def file_json(self, properties: dict[str, Any], *values: Any) -> dict[str, Any]:
        """File JSON values with a schema of these properties."""
        schema = json_file({"type": "object", "properties": properties})
        return self.file(schema, *(json.dumps(value).encode() for value in values))

    def rows(self, columns: str, table: str = "orders") -> list[tuple[Any, ...]]:
        """Return what DuckDB selects, by offset; pyiceberg and pandas have to find as many rows."""
        found = query(self.directory, columns, table, 'ORDER BY "offset"')
        assert len(rows_in(self.directory, table)) == len(found)
        assert len(table_in(self.directory, table).scan().to_pandas()) == len(found)
        return found


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(tmp_path)


def test_json_bodies_have_columns_beside_the_envelope(orders: Orders) -> None:
    bodies = [
        {"id": number, "total": number + 0.25, "at": "2026-01-31T12:30:00Z", "due": "2026-02-28", "type": "new",
         "items": [{"sku": "a", "count": number}], "customer": {"name": "Ann"}, "labels": {"k": "v"}}
        for number in range(3)
    ]  # fmt: skip
    answer = orders.file(json_file(JSON_ORDER), *(json.dumps(body).encode() for body in bodies))
    assert len(answer["files"]) == 1
    columns = 'source_name, routing_key, id, total, due, body_type, items[1].count, customer.name, labels["k"]'
    assert orders.rows(columns.replace('"k"', "'k'")) == [
        ("q", "key", number, Decimal(f"{number}.25"), date(2026, 2, 28), "new", number, "Ann", "v")
        for number in range(3)
    ]
    frame: pd.DataFrame = table_in(orders.directory, "orders").scan().to_pandas().sort_values("offset")
    assert list(frame["total"]) == [Decimal(f"{number}.25") for number in range(3)]
    assert list(frame["at"]) == [pd.Timestamp(AT)] * 3
    assert [json.loads(body)["id"] for body in frame["body"]] == [0, 1, 2], "the body stays as it was sent"
    [planned] = table_in(orders.directory, "orders").scan(row_filter="id > 1").plan_files()
    assert planned.file.record_count == 3
    assert not list(table_in(orders.directory, "orders").scan(row_filter="id > 2").plan_files()), "bounds are known"


def test_avro_and_protobuf_bodies_have_columns(orders: Orders) -> None:
    value = {
        "id": 7, "paid": None, "total": Decimal("12.50"), "weight": 3.0, "at": AT, "due": date(2026, 2, 28),
        "customer": {"name": "Ann"}, "items": [{"a": 1}], "state": "OLD", "code": b"abc", "note": None, "parent": None,
    }  # fmt: skip
    orders.file(avro_file(AVRO_ORDER, "avro_orders"), encode_avro(AVRO_ORDER, value), b"\xff")
    found = orders.rows("id, paid, total, due, customer.name, state, code, items[1]['a']", "avro_orders")
    assert found == [(7, None, Decimal("12.50"), date(2026, 2, 28), "Ann", "OLD", b"abc", 1)]
    order: Any = order_type()(id=2**64 - 1, name="Ann", counts=[1, 2])
    orders.file(protobuf_file("proto_orders"), order.SerializeToString(), b"\x12\x05ab")
    assert orders.rows("id, name, counts, nick", "proto_orders") == [(2**64 - 1, "Ann", [1, 2], None)]
    reasons = orders.rows('"table", reason', "dead_letters")
    assert [table for table, _ in reasons] == ["avro_orders", "proto_orders"]
    assert "bytes expected" in reasons[0][1]
    assert "not a shop.Order" in reasons[1][1]


def test_a_refused_body_is_a_dead_letter_with_its_envelope_and_the_reason(orders: Orders) -> None:
    properties = {"n": {"type": "integer", "format": "int32"}, "s": {"type": "string"}}
    schema = json_file({"type": "object", "properties": properties})
    bodies = (b'{"n": 1}', b"junk", b'{"n": 4294967296}', b'{"s": "\\ud800"}', b'{"n": "1"}', b'{"n": 5, "s": "x"}')
    orders.file(schema, *bodies)
    assert orders.rows('"offset", n, s') == [(0, 1, None), (5, 5, "x")]
    dead = orders.rows('"offset", "table", source_name, routing_key, body, reason', "dead_letters")
    assert [(row[0], row[4]) for row in dead] == list(enumerate(bodies))[1:5]
    assert {row[1:4] for row in dead} == {("orders", "q", "key")}
    reasons = [row[5] for row in dead]
    assert reasons[0] == "not JSON: Expecting value: line 1 column 1 (char 0)"
    assert reasons[1].startswith("does not fit its column: Value 4294967296")
    assert reasons[2].startswith("does not fit its column: 'utf-8' codec can't encode") or "surrogate" in reasons[2]
    assert reasons[3] == '$.n: "1" is not of type "integer"'


def test_a_segment_of_refused_bodies_only_is_filed_once(orders: Orders) -> None:
    schema = json_file({"type": "object"})
    orders.file(schema, b"a", b"b")
    orders.next = 0
    assert orders.file(schema, b"a", b"b") == {"id": None, "files": []}
    assert orders.rows('"offset"', "dead_letters") == [(0,), (1,)]
    assert not rows_in(orders.directory, "orders")


def test_a_segment_of_two_days_has_rows_and_dead_letters_of_both(orders: Orders) -> None:
    schema = json_file({"type": "object", "properties": {"n": {"type": "integer"}}})
    orders.file(schema, *[b'{"n": 1}', b"x"] * 5, at_ms=MIDNIGHT_MS - 5)
    assert len(orders.rows("n")) == len(orders.rows("body", "dead_letters")) == 5


def test_two_workers_that_repeat_a_segment_with_other_schemas_file_each_row_once(tmp_path: Path) -> None:
    schemas = [json_file({"type": "object", "properties": {"n": {"maximum": most}}}) for most in (4, 7)]
    bodies = [b'{"n": %d}' % number for number in range(10)]
    first, second = Orders(tmp_path), Orders(tmp_path)
    for worker, schema in ((first, schemas[0]), (second, schemas[1])):
        worker.file(schema, *bodies)
        worker.file(schema, *bodies)
    second.next = 10
    first.next = 10
    assert first.file(schemas[0], *bodies)["files"] == []
    typed, dead = (first.rows('"offset"', table) for table in ("orders", "dead_letters"))
    assert sorted([*typed, *dead]) == [(offset,) for offset in range(20)]
    assert {offset % 10 for (offset,) in typed} == set(range(5))


def test_a_restored_store_that_uses_offsets_again_files_its_messages(orders: Orders) -> None:
    schema = json_file({"type": "object", "properties": {"n": {"type": "integer"}}})
    orders.file(schema, b'{"n": 1}', b"x", b"y")
    orders.next = 0
    orders.file(schema, b'{"n": 2}', b"z", at_ms=NOON_MS + 1000)
    assert sorted(orders.rows("n")) == [(1,), (2,)]
    assert sorted(orders.rows("body", "dead_letters")) == [(b"x",), (b"y",), (b"z",)]


def test_new_fields_widened_numbers_and_removed_fields_evolve_the_table(orders: Orders) -> None:
    line = {
        "type": "object",
        "properties": {"sku": {"type": "string"}, "count": {"type": "integer", "format": "int32"}},
    }
    old = {
        "n": {"type": "integer", "format": "int32"}, "gone": {"type": "string"},
        "price": {"type": "number", "format": "decimal(6,2)"}, "lines": {"type": "array", "items": line},
    }  # fmt: skip
    orders.file_json(old, {"n": 1, "gone": "x", "price": 1.5, "lines": [{"sku": "a", "count": 1}]})
    more = {"sku": {"type": "string"}, "count": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}
    new = {
        "n": {"type": "integer"}, "price": {"type": "number", "format": "decimal(12,2)"},
        "lines": {"type": "array", "items": {"type": "object", "properties": more}}, "added": {"type": "boolean"},
    }  # fmt: skip
    value = {"n": 2**40, "price": 1234567.25, "lines": [{"count": 2**40, "at": "2026-01-31T12:30:00Z"}], "added": True}
    assert "files" in orders.file_json(new, value)
    assert orders.rows("n, gone, price, lines[1].sku, lines[1].count, added") == [
        (1, "x", Decimal("1.50"), "a", 1, None),
        (2**40, None, Decimal("1234567.25"), None, 2**40, True),
    ]
    assert "files" in orders.file_json(old, {"n": 3, "gone": "y", "price": 2}), "the old schema still fits"
    assert orders.rows("n, gone, price")[2] == (3, "y", Decimal(2))
    catalogue = open_catalogue(orders.address)
    table = catalogue.load_table(("gateway", "orders"))
    before = orders.rows('"offset", n, gone, price, lines, added, body')
    assert [merged.merged for merged in compact(catalogue, table, 1 << 30, 1 << 30)] == [3]
    assert orders.rows('"offset", n, gone, price, lines, added, body') == before


INCOMPATIBLE = [
    ({"n": {"type": "string"}}, "the column n is long and would be string"),
    ({"n": {"type": "number"}}, "the column n is long and would be double"),
    ({"N": {"type": "integer"}}, "the column n differs from N in capital letters only"),
    ({"o": {"type": "string"}}, "the column o is struct<"),
    ({"o": {"type": "object", "properties": {"x": {"type": "integer"}}}}, "the column o.x is double and would be long"),
    ({"l": {"type": "array", "items": {"type": "string"}}}, "the column l.element is long and would be string"),
    (
        {"d": {"type": "number", "format": "decimal(12,3)"}},
        "the column d is decimal(12, 2) and would be decimal(12, 3)",
    ),
]


@pytest.mark.parametrize(("properties", "reason"), INCOMPATIBLE, ids=[reason for _, reason in INCOMPATIBLE])
def test_an_incompatible_change_is_refused_in_one_line_and_changes_nothing(
    orders: Orders, properties: dict[str, Any], reason: str
) -> None:
    usual = {
        "n": {"type": "integer"}, "o": {"type": "object", "properties": {"x": {"type": "number"}}},
        "l": {"type": "array", "items": {"type": "integer"}}, "d": {"type": "number", "format": "decimal(12,2)"},
    }  # fmt: skip
    orders.file_json(usual, {"n": 1})
    error = orders.file_json(properties, {})["error"]
    assert reason in error
    assert "\n" not in error
    [fault] = schema_faults(orders.address, [json_file({"type": "object", "properties": properties})])
    assert fault.startswith("orders.json: the table orders cannot take the schema: ")
    assert "files" in orders.file_json(usual, {"n": 2})
    assert orders.rows("n") == [(1,), (2,)]
    assert schema_faults(orders.address, [json_file({"type": "object", "properties": usual})]) == []


def test_a_catalogue_that_does_not_answer_is_no_fault_of_a_schema(tmp_path: Path) -> None:
    (tmp_path / "iceberg").mkdir()
    (tmp_path / "iceberg/catalog.db").write_bytes(b"no database" * 100)
    assert schema_faults(address_in(tmp_path), [json_file({"type": "object"})]) == []
