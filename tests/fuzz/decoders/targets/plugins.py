"""Decoders of bodies in plugins that check them: JSON Schema, Avro, Protobuf."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from typing import Final

from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet

from gateway.kernel.errors import ConfigurationError
from gateway_interceptors.validation import avro, json_schema, protobuf
from gateway_interceptors.validation.validation import Complaint
from tests.fuzz.decoders.laws import attempt, require
from tests.fuzz.decoders.target import Target


def _checked(complaint: Complaint) -> Callable[[bytes], None]:
    def check(data: bytes) -> None:
        """A body is right, or a complaint says what is wrong."""
        require(isinstance(complaint(data), str), "a body is right or wrong")

    return check


_AVRO: Final = {
    "type": "record",
    "name": "R",
    "fields": [
        {"name": "n", "type": "long"},
        {"name": "s", "type": ["null", "string"]},
        {"name": "a", "type": {"type": "array", "items": "int"}},
        {"name": "m", "type": {"type": "map", "values": "bytes"}},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "f", "type": {"type": "fixed", "name": "F", "size": 3}},
        {"name": "next", "type": ["null", "R"]},
        {"name": "d", "type": "double"},
    ],
}

_JSON: Final = {
    "type": "object",
    "required": ["a"],
    "properties": {"a": {"type": "integer"}, "b": {"type": "string", "pattern": "^x+$", "format": "date"}},
    "additionalProperties": {"type": "array", "items": {"$ref": "#"}, "uniqueItems": True},
}


def _descriptors() -> str:
    found = FileDescriptorSet()
    file = found.file.add(name="m.proto", package="p", syntax="proto2")
    message = file.message_type.add(name="M")
    message.field.add(
        name="n", number=1, type=FieldDescriptorProto.TYPE_INT64, label=FieldDescriptorProto.LABEL_REQUIRED
    )
    message.field.add(
        name="s", number=2, type=FieldDescriptorProto.TYPE_STRING, label=FieldDescriptorProto.LABEL_REPEATED
    )
    message.field.add(
        name="m",
        number=3,
        type=FieldDescriptorProto.TYPE_MESSAGE,
        type_name=".p.M",
        label=FieldDescriptorProto.LABEL_OPTIONAL,
    )
    return b64encode(found.SerializeToString()).decode()


def _avro_seeds() -> Iterable[bytes]:
    yield b"\x02\x02\x04hi\x04\x02\x04\x00\x02\x02k\x02b\x00\x00abc\x00" + bytes(8)
    yield b"\x02\x00\x00\x00\x02abc\x02\x02\x00\x00\x00\x00abc\x00" + bytes(16)


_OF_PROTOBUF: Final = _checked(
    protobuf.complaint_of(
        protobuf.ProtobufRule.model_validate(
            {"exchange": "", "message": "p.M", "descriptor_set": _descriptors(), "unknown_fields": "refuse"}
        )
    )
)


def _protobuf(data: bytes) -> None:
    """A body is right or wrong; a descriptor set is understood or refused."""
    _OF_PROTOBUF(data)
    attempt(ConfigurationError, protobuf._pool, data)


TARGETS: Final = (
    Target(
        "plugins-avro-bodies",
        _checked(avro.complaint_of(avro.AvroRule.model_validate({"exchange": "", "schema": _AVRO}))),
        ("gateway.body_formats.avro_body:AvroBody.take", "gateway.body_formats.avro_body:AvroBody.number"),
        _avro_seeds,
        (b"\x80\x80\x01", b"\xff" * 10, b"\x01", b"\x00"),
    ),
    Target(
        "plugins-json-schema-bodies",
        _checked(json_schema.complaint_of(json_schema.SchemaRule.model_validate({"exchange": "", "schema": _JSON}))),
        ("gateway_interceptors.validation.json_schema:_refuse_constant", "gateway.body_formats.json_body:is_deep_json"),
        lambda: (b'{"a": 1, "b": "xx", "c": [{"a": 2}]}', b'{"a": 1e400}', b'{"a": NaN}', b'{"a": 1, "b": "\\ud800"}'),
        (b"{", b"}", b"[", b"]", b'"a":', b"1e999", b"NaN", b"\\ud800", b"[" * 60),
    ),
    Target(
        "plugins-protobuf-bodies",
        _protobuf,
        ("gateway_interceptors.validation.protobuf:_pool",),
        lambda: (b"\x08\x05\x12\x02hi\x1a\x02\x08\x01", b"\x08\x01\x20\x01", b64decode(_descriptors())),
        (b"\x1a\x80\x01", b"\x08\x01", b"\xff" * 10),
    ),
)
