"""The columns of a Protobuf message: the Arrow type of each field, and the conversion of its values.

A field that can be absent is null then; one without presence has its default. A message that contains itself, and the
well-known types for any JSON, are kept as JSON text.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import MessageToJson

from gateway.columnar.bodies.body_schema import TIMESTAMP, BodyRefused, list_of, moment_us


class ProtobufPart(NamedTuple):
    """The type of a value, and its conversion."""

    kind: pa.DataType
    convert: Callable[[Any], Any]


def message_part(descriptor: Descriptor, within: frozenset[str]) -> ProtobufPart:
    """Return the type and the conversion of a message, which is a field of the types ``within``."""
    name = descriptor.full_name
    if name in _WELL_KNOWN:
        return _WELL_KNOWN[name]
    if name in within or not descriptor.fields:
        return _JSON
    parts = [(field.name, _present(field), _field(field, within | {name})) for field in descriptor.fields]

    def convert(message: Any) -> dict[str, Any]:
        return {
            name: part.convert(getattr(message, name)) if not is_optional or message.HasField(name) else None
            for name, is_optional, part in parts
        }

    return ProtobufPart(pa.struct([(name, part.kind) for name, _, part in parts]), convert)


def _present(field: FieldDescriptor) -> bool:
    """Return whether a field can be absent."""
    return bool(field.has_presence)


def _field(field: FieldDescriptor, within: frozenset[str]) -> ProtobufPart:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        return _map(entry, within)
    part = _single(field, within)
    if not field.is_repeated:
        return part
    return ProtobufPart(list_of(part.kind), lambda values: [part.convert(value) for value in values])


def _map(entry: Descriptor, within: frozenset[str]) -> ProtobufPart:
    key = _single(entry.fields_by_name["key"], within)
    value = _single(entry.fields_by_name["value"], within)

    def convert(pairs: Any) -> list[tuple[Any, Any]]:
        return [(key.convert(name), value.convert(pairs[name])) for name in pairs]

    return ProtobufPart(pa.map_(key.kind, value.kind), convert)


def _single(field: FieldDescriptor, within: frozenset[str]) -> ProtobufPart:
    if field.message_type is not None:
        return message_part(field.message_type, within)
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return ProtobufPart(pa.string(), lambda number: names.get(number, str(number)))
    return ProtobufPart(_PLAIN[field.type], _same)


def _same(value: Any) -> Any:
    return value


#: The types of fields without a type of their own. No signed type holds all numbers of 64 bits without a sign.
_PLAIN: Final[Mapping[int, pa.DataType]] = {
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_UINT64: pa.decimal128(20, 0),
    FieldDescriptor.TYPE_FIXED64: pa.decimal128(20, 0),
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_UINT32: pa.int64(),
    FieldDescriptor.TYPE_FIXED32: pa.int64(),
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_STRING: pa.string(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
}


def _timestamp(message: Any) -> int:
    if not 0 <= message.nanos < 1_000_000_000:
        raise BodyRefused(f"a Timestamp with {message.nanos} ns")
    return moment_us(message.seconds * 1_000_000 + message.nanos // 1000)


def _json(message: Any) -> str:
    try:
        return MessageToJson(message, preserving_proto_field_name=True, indent=None)
    except (ValueError, TypeError) as error:  # such as a NaN of a Value, or a Timestamp that is out of range
        raise BodyRefused(f"{message.DESCRIPTOR.full_name}: {error}") from None


_JSON: Final = ProtobufPart(pa.string(), _json)


def _wrapper(kind: pa.DataType) -> ProtobufPart:
    return ProtobufPart(kind, lambda message: message.value)


#: Messages with a type of their own.
_WELL_KNOWN: Final[Mapping[str, ProtobufPart]] = {
    "google.protobuf.Timestamp": ProtobufPart(TIMESTAMP, _timestamp),
    "google.protobuf.Struct": _JSON,
    "google.protobuf.Value": _JSON,
    "google.protobuf.ListValue": _JSON,
    "google.protobuf.Any": _JSON,
    "google.protobuf.DoubleValue": _wrapper(pa.float64()),
    "google.protobuf.FloatValue": _wrapper(pa.float32()),
    "google.protobuf.Int64Value": _wrapper(pa.int64()),
    "google.protobuf.UInt64Value": _wrapper(pa.decimal128(20, 0)),
    "google.protobuf.Int32Value": _wrapper(pa.int32()),
    "google.protobuf.UInt32Value": _wrapper(pa.int64()),
    "google.protobuf.BoolValue": _wrapper(pa.bool_()),
    "google.protobuf.StringValue": _wrapper(pa.string()),
    "google.protobuf.BytesValue": _wrapper(pa.binary()),
}
