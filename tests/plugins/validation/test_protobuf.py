"""Bodies are checked with a Protobuf type."""

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from gateway.api import ConfigurationError, Diversion
from gateway.testing import check_interceptor, plain_message
from tests.plugins.validation.rules import AMQP, complaint, validator

PLUGIN = "interceptor-protobuf"


def described(name: str, syntax: str, *imports: str) -> FileDescriptorProto:
    """Return a file with the type ``shop.Order``: id, customer, and parts, which are orders."""
    file = FileDescriptorProto(name=name, package="shop", syntax=syntax, dependency=imports)
    order = file.message_type.add(name="Order")
    required = FieldDescriptorProto.LABEL_REQUIRED if syntax == "proto2" else FieldDescriptorProto.LABEL_OPTIONAL
    order.field.add(name="id", number=1, label=required, type=FieldDescriptorProto.TYPE_INT64)
    order.field.add(
        name="customer", number=2, label=FieldDescriptorProto.LABEL_OPTIONAL, type=FieldDescriptorProto.TYPE_STRING
    )
    order.field.add(
        name="parts", number=3, label=FieldDescriptorProto.LABEL_REPEATED,
        type=FieldDescriptorProto.TYPE_MESSAGE, type_name=".shop.Order",
    )  # fmt: skip
    return file


def descriptor_set(*files: FileDescriptorProto) -> str:
    return b64encode(FileDescriptorSet(file=files).SerializeToString()).decode()


PROTO3 = descriptor_set(described("order.proto", "proto3"))
PROTO2 = descriptor_set(described("order.proto", "proto2"))
ORDER = {"message": "shop.Order", "descriptor_set": PROTO3}


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", ""),
        (b"\x08\x07\x12\x03Ada\x1a\x02\x08\x01", ""),
        (b"\x20\x07", ""),
        (b"\x08", "it is not a shop.Order"),
        (b"\x12\x05Ada", "it is not a shop.Order"),
        (b"\x12\x02\xff\xfe", "it is not a shop.Order"),
        (b"{}", "it is not a shop.Order"),
        (b"\x08" + b"\xff" * 11, "it is not a shop.Order"),
    ],
)
def test_a_body_must_be_a_message_of_the_type(body: bytes, fault: str) -> None:
    assert complaint(validator(PLUGIN, **ORDER), body) == fault


def test_a_required_field_must_be_there() -> None:
    found = validator(PLUGIN, message="shop.Order", descriptor_set=PROTO2)
    assert complaint(found, b"\x08\x07") == ""
    assert complaint(found, b"\x08\x07\x1a\x00") == "required fields are missing: parts[0].id"


def test_unknown_fields_are_refused_if_the_rule_says_so() -> None:
    found = validator(PLUGIN, **ORDER, unknown_fields="refuse")
    unknown = "it has fields that shop.Order does not have"
    assert [complaint(found, body) for body in (b"\x08\x07", b"\x20\x07", b"\x1a\x02\x20\x07")] == ["", *[unknown] * 2]


def test_deep_bodies_are_refused_without_harm() -> None:
    body = b""
    while len(body) < 15_000:
        size = len(body)
        body = b"\x1a" + (bytes([size]) if size < 128 else bytes([size & 0x7F | 0x80, size >> 7])) + body
    assert complaint(validator(PLUGIN, **ORDER), body) == "it is not a shop.Order"


def test_the_types_may_be_in_a_file_with_its_imports(tmp_path: Path) -> None:
    file = tmp_path / "shop.binpb"
    base = FileDescriptorProto(name="base.proto", package="base", syntax="proto3")
    file.write_bytes(
        FileDescriptorSet(file=[base, described("order.proto", "proto3", "base.proto")]).SerializeToString()
    )
    found = validator(PLUGIN, message="shop.Order", descriptor_file=str(file))
    assert complaint(found, b"\x08\x07") == ""


def test_types_of_two_rules_with_the_same_name_do_not_meet() -> None:
    lax, strict = (validator(PLUGIN, message="shop.Order", descriptor_set=types) for types in (PROTO3, PROTO2))
    assert complaint(lax, b"") == ""
    assert complaint(strict, b"") == "required fields are missing: id"


def test_an_invalid_body_is_quarantined() -> None:
    found = validator(PLUGIN, **ORDER, quarantine="bad")
    check_interceptor(found)
    decision = found.on_publish(plain_message(body=b"\x08"), AMQP)
    assert isinstance(decision, Diversion)
    assert decision.message is not None
    assert decision.message.headers["x-quarantine-reason"] == "the body is invalid: it is not a shop.Order"


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ({"message": "shop.Order"}, "rule 1: one of 'descriptor_file' and 'descriptor_set' is needed"),
        ({**ORDER, "descriptor_file": "x"}, "rule 1: one of 'descriptor_file' and 'descriptor_set' is needed"),
        ({**ORDER, "message": "shop.Ordr"}, "rule 1: the descriptor set has no message 'shop.Ordr'"),
        ({**ORDER, "descriptor_set": "?"}, "rule 1: 'descriptor_set' is not base64"),
        ({**ORDER, "descriptor_set": "Zm9v"}, "rule 1: this is not a descriptor set"),
        ({"message": "M", "descriptor_file": "/none/x"}, "rule 1: 'descriptor_file' '/none/x' cannot be read"),
        (
            {**ORDER, "descriptor_set": descriptor_set(described("order.proto", "proto3", "base.proto"))},
            "rule 1: the descriptor set lacks 'base.proto': use protoc --include_imports",
        ),
        (
            {**ORDER, "descriptor_set": descriptor_set(described("a.proto", "proto3"), described("b.proto", "proto3"))},
            "rule 1: the descriptor set is not valid",
        ),
    ],
)
def test_types_that_cannot_be_used_are_refused_when_the_plugin_is_enabled(rule: Any, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        validator(PLUGIN, **rule)
