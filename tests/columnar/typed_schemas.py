"""Schemas of one kind of body in each language, with nested fields, lists, maps, times and decimals."""

import json
from io import BytesIO
from typing import Any, Final

from fastavro import parse_schema, schemaless_writer
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP_FILE

from gateway.columnar.tables.schema_files import SchemaFile

JSON_ORDER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "paid": {"type": ["boolean", "null"]},
        "total": {"type": "number", "format": "decimal(12,2)"},
        "weight": {"type": "number"},
        "at": {"type": "string", "format": "date-time"},
        "due": {"type": "string", "format": "date"},
        "customer": {"type": "object", "properties": {"name": {"type": "string"}, "city": {"type": "string"}}},
        "items": {
            "type": "array",
            "items": {"type": "object", "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}}},
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "note": {"type": ["string", "integer"]},
        "parent": {"$ref": "#"},
        "type": {"enum": ["new", "old"]},
    },
    "required": ["id"],
}

AVRO_ORDER: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "paid", "type": ["null", "boolean"]},
        {"name": "total", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}},
        {"name": "weight", "type": "double"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "due", "type": {"type": "int", "logicalType": "date"}},
        {
            "name": "customer",
            "type": {"type": "record", "name": "Customer", "fields": [{"name": "name", "type": "string"}]},
        },
        {"name": "items", "type": {"type": "array", "items": {"type": "map", "values": "int"}}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "OLD"]}},
        {"name": "code", "type": {"type": "fixed", "name": "Code", "size": 3}},
        {"name": "note", "type": ["null", "string", "long"]},
        {"name": "parent", "type": ["null", "Order"]},
    ],
}


def json_file(schema: Any, table: str = "orders") -> SchemaFile:
    """Return a schema file in JSON Schema."""
    return SchemaFile(f"{table}.json", table, "json-schema", "", json.dumps(schema).encode())


def avro_file(schema: Any, table: str = "orders") -> SchemaFile:
    """Return a schema file in Avro."""
    return SchemaFile(f"{table}.avsc", table, "avro", "", json.dumps(schema).encode())


def protobuf_file(table: str = "orders", message: str = "") -> SchemaFile:
    """Return a schema file in Protobuf."""
    return SchemaFile(f"{table}.binpb", table, "protobuf", message, order_descriptors().SerializeToString())


def encode_avro(schema: Any, value: Any) -> bytes:
    """Return the binary encoding of a value."""
    written = BytesIO()
    schemaless_writer(written, parse_schema(json.loads(json.dumps(schema))), value)
    return written.getvalue()


_TYPES: Final = {
    "id": FieldDescriptorProto.TYPE_UINT64,
    "name": FieldDescriptorProto.TYPE_STRING,
    "weight": FieldDescriptorProto.TYPE_DOUBLE,
    "raw": FieldDescriptorProto.TYPE_BYTES,
}


def order_descriptors() -> FileDescriptorSet:
    """Return the descriptor set of a file with one message ``shop.Order``."""
    file = FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.append(TIMESTAMP_FILE.name)
    order = file.message_type.add(name="Order")
    for number, (name, kind) in enumerate(_TYPES.items(), 1):
        order.field.add(name=name, number=number, type=kind, label=FieldDescriptorProto.LABEL_OPTIONAL)
    order.field.add(
        name="at", number=5, type=FieldDescriptorProto.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp",
        label=FieldDescriptorProto.LABEL_OPTIONAL,
    )  # fmt: skip
    order.field.add(
        name="counts", number=6, type=FieldDescriptorProto.TYPE_INT32, label=FieldDescriptorProto.LABEL_REPEATED
    )
    order.field.add(
        name="parent", number=7, type=FieldDescriptorProto.TYPE_MESSAGE, type_name=".shop.Order",
        label=FieldDescriptorProto.LABEL_OPTIONAL,
    )  # fmt: skip
    order.field.add(
        name="labels", number=8, type=FieldDescriptorProto.TYPE_MESSAGE, type_name=".shop.Order.LabelsEntry",
        label=FieldDescriptorProto.LABEL_REPEATED,
    )  # fmt: skip
    entry = order.nested_type.add(name="LabelsEntry")
    entry.options.map_entry = True
    for number, name in enumerate(("key", "value"), 1):
        entry.field.add(
            name=name, number=number, type=FieldDescriptorProto.TYPE_STRING, label=FieldDescriptorProto.LABEL_OPTIONAL
        )
    state = order.enum_type.add(name="State")
    state.value.add(name="NEW", number=0)
    state.value.add(name="OLD", number=1)
    order.field.add(
        name="state", number=9, type=FieldDescriptorProto.TYPE_ENUM, type_name=".shop.Order.State",
        label=FieldDescriptorProto.LABEL_OPTIONAL,
    )  # fmt: skip
    order.oneof_decl.add(name="_nick")
    order.field.add(
        name="nick", number=10, type=FieldDescriptorProto.TYPE_STRING, label=FieldDescriptorProto.LABEL_OPTIONAL,
        oneof_index=0, proto3_optional=True,
    )  # fmt: skip
    found = FileDescriptorSet()
    TIMESTAMP_FILE.CopyToProto(found.file.add())
    found.file.append(file)
    return found


def order_type() -> type[Message]:
    """Return the class of ``shop.Order``."""
    pool = DescriptorPool()
    for file in order_descriptors().file:
        pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
