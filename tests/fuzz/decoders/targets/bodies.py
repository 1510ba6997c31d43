"""Decoders of bodies of typed archives: JSON Schema, Avro, Protobuf."""

import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Final

import pyarrow as pa

from gateway.columnar.bodies.body_schema import BodyRefused
from gateway.columnar.bodies.inference import Inference
from gateway.columnar.bodies.languages import open_schema
from gateway.columnar.encoding.pieces import Piece
from gateway.columnar.encoding.schema import MESSAGES
from gateway.columnar.encoding.typed_messages import TypedMessages, typed_columns
from gateway.columnar.tables.schema_files import SchemaFile
from gateway.kernel.errors import ConfigurationError
from tests.columnar.typed_schemas import AVRO_ORDER, JSON_ORDER, avro_file, encode_avro, json_file, protobuf_file
from tests.fuzz.decoders.laws import attempt, require
from tests.fuzz.decoders.target import Target

_EMPTY: Final = {name: pa.array([None], kind) for name, kind in zip(MESSAGES.names, MESSAGES.types, strict=True)}


def _sorted(file: SchemaFile) -> Callable[[bytes], None]:
    bodies = open_schema(file)
    messages = TypedMessages(file.table, bodies, typed_columns(bodies.kind))

    def sort(data: bytes) -> None:
        """A body is a typed row, or a dead letter with a reason."""
        attempt(BodyRefused, bodies.decode, data)
        batch = pa.RecordBatch.from_pydict({**_EMPTY, "body": pa.array([data], pa.binary())}, schema=MESSAGES)
        refused: list[Piece] = []
        typed = list(messages.accepted([Piece(0, 1, 0, 0, batch)], refused.append))
        require(len(typed) + len(refused) == 1, "a body is in one table")
        require(all(piece.batch["reason"][0].as_py() for piece in refused), "a refusal has a reason")

    return sort


def _inferred(data: bytes) -> None:
    """A sample matches the schema that it gives, or is counted."""
    inference = Inference()
    inference.add(data)
    require(inference.samples + sum(inference.refused.values()) == 1, "a sample is counted once")
    if inference.samples:
        schema = attempt(ConfigurationError, open_schema, json_file(inference.schema()))
        require(schema is not None, "a schema is valid, or says why not")


_ORDER: Final = {
    "id": 7, "paid": None, "total": Decimal("1.5"), "weight": 0.5, "at": datetime(2026, 1, 1), "due": date(2026, 1, 1),
    "customer": {"name": "A"}, "items": [{"a": 1}], "state": "OLD", "code": b"abc", "note": "x", "parent": None,
}  # fmt: skip

_JSON: Final = json.dumps(
    {"id": 1, "at": "2026-01-01T00:00:00Z", "total": 1.5, "items": [{"count": 1}], "note": 2}
).encode()

TARGETS: Final = (
    Target(
        "bodies-avro",
        _sorted(avro_file(AVRO_ORDER)),
        (
            "gateway.columnar.bodies.avro:AvroBodies.decode",
            "gateway.body_formats.avro_body:AvroBody.take",
            "gateway.body_formats.avro_body:AvroBody.number",
        ),
        lambda: (encode_avro(AVRO_ORDER, _ORDER),),
        (b"\x80\x80\x01", b"\xff" * 10, b"\x01", b"\x00"),
    ),
    Target(
        "bodies-json",
        _sorted(json_file(JSON_ORDER)),
        ("gateway.columnar.bodies.json_schema:JsonBodies.decode",),
        lambda: (_JSON, b'{"id": 1, "parent": {"id": 2}}', b'{"id": 1e400}', b'{"id": 1, "note": "\\ud800"}'),
        (b"{", b"}", b"[", b"]", b'"id":', b"1e999", b"NaN", b"\\ud800", b"[" * 60),
    ),
    Target(
        "bodies-protobuf",
        _sorted(protobuf_file()),
        ("gateway.columnar.bodies.protobuf:ProtobufBodies.decode",),
        lambda: (b"\x08\x05\x12\x02hi\x2a\x02\x08\x01\x3a\x02\x08\x01", b"\x48\x05"),
        (b"\x3a\x02", b"\x08\x01", b"\xff" * 10),
    ),
    Target(
        "bodies-inference",
        _inferred,
        ("gateway.columnar.bodies.inference:Inference.add",),
        lambda: (_JSON, b'{"a": null, "b": [1, 2.5], "c": {"d": "2026-01-01"}}'),
        (b"{", b"}", b"[", b"]", b"null", b"1.5", b"NaN"),
    ),
)
