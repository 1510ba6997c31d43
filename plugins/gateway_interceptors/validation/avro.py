"""interceptor-avro: refuses bodies that are not in Avro's binary encoding of a schema, or diverts them to quarantine.

Needs the library ``fastavro``: ``pip install 'gateway-broker[avro]'``.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field

from gateway.api import ConfigurationError, Interceptor, MetricSource, PluginSettings, TracedVhost, hookimpl
from gateway_interceptors.validation.avro_body import AvroBody, AvroChecks, Invalid
from gateway_interceptors.validation.validation import Complaint, ValidationRule, Validations, file_content, missing

_validations: Final = Validations()

#: The first byte of Confluent's wire format; an identifier of four bytes follows.
_CONFLUENT: Final = b"\x00"
_CONFLUENT_SIZE: Final = 5

#: The first bytes of Avro's single-object encoding; a fingerprint of eight bytes follows.
_SINGLE_OBJECT: Final = b"\xc3\x01"


class AvroRule(ValidationRule):
    """The schema of the messages that are published to one exchange."""

    schema_: dict[str, Any] | list[Any] | str | None = Field(default=None, alias="schema")
    """The Avro schema: a table, a list for a union, the name of a primitive type, or any of them as JSON text."""

    schema_file: str = ""
    """A file with the schema (``.avsc``) instead. It is read when the plugin is enabled or reloaded."""

    framing: Literal["none", "single-object", "confluent"] = "none"
    """What stands before the encoded value: nothing, Avro's single-object encoding with the fingerprint of the schema,
    or the wire format of Confluent's schema registry."""

    schema_id: int | None = Field(default=None, ge=0, le=0xFFFFFFFF)
    """The required identifier in Confluent's wire format; none for any."""


class AvroSettings(PluginSettings):
    """The settings of ``interceptor-avro``."""

    rules: list[AvroRule] = []
    """The rules; the first that matches a message applies, and a message without a rule passes."""


def complaint_of(rule: AvroRule) -> Complaint:
    """Return the check of a schema. :raises ConfigurationError: if it is not valid, or the library is missing."""
    try:
        from fastavro import parse_schema
    except ImportError:
        raise missing("fastavro", "avro") from None
    schema = _schema(rule)
    named: dict[str, Any] = {}
    try:
        parsed = parse_schema(schema, named_schemas=named)
        check = AvroChecks(named).of(parsed)
    except KeyError as error:
        raise ConfigurationError(f"the schema is not valid: the key {error} is missing") from None
    except Exception as error:  # the library raises what its code runs into, such as TypeError
        raise ConfigurationError(f"the schema is not valid: {_described(error)}") from None
    start, skipped = _framing(rule, parsed)

    def complaint(data: bytes) -> str:
        if len(data) < skipped or not data.startswith(start):
            return f"it has no head of the framing {rule.framing!r}" + (f" with {start.hex()}" if start else "")
        body = AvroBody(data, Invalid)
        body.at = skipped
        try:
            check(body)
        except Invalid as error:
            return str(error)
        left = len(data) - body.at
        return f"{left} bytes follow the value" if left else ""

    return complaint


def _framing(rule: AvroRule, parsed: Any) -> tuple[bytes, int]:  # Any: JSON
    """Return the bytes with which bodies start, and the number of bytes before the encoded value."""
    from fastavro.schema import fingerprint, to_parsing_canonical_form

    if rule.framing == "single-object":
        start = _SINGLE_OBJECT + bytes.fromhex(fingerprint(to_parsing_canonical_form(parsed), "CRC-64-AVRO"))
        return start, len(start)
    if rule.framing == "confluent":
        start = _CONFLUENT if rule.schema_id is None else _CONFLUENT + rule.schema_id.to_bytes(4, "big")
        return start, _CONFLUENT_SIZE
    return b"", 0


def _schema(rule: AvroRule) -> Any:  # Any: JSON
    """Return the schema of a rule, from its text or file if need be."""
    if (rule.schema_ is None) == (not rule.schema_file):
        raise ConfigurationError("one of 'schema' and 'schema_file' is needed")
    if rule.schema_id is not None and rule.framing != "confluent":
        raise ConfigurationError("'schema_id' needs framing = \"confluent\"")
    schema = rule.schema_
    if rule.schema_file:
        schema = file_content(Path(rule.schema_file), "schema_file").decode(errors="replace")
    if isinstance(schema, str) and schema.lstrip()[:1] in ("{", "[", '"'):
        try:
            return json.loads(schema)
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"the schema is not JSON: {error}") from None
    return schema


def _described(error: Exception) -> str:
    """Return the text of an error of the library, which for an unknown type is only its name."""
    return f"unknown type {error}" if type(error).__name__ == "UnknownType" else str(error)


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the rules."""
    return AvroSettings


@hookimpl
def gateway_interceptors(vhost: TracedVhost, settings: AvroSettings) -> Sequence[Interceptor]:
    """Offer the interceptor. :raises ConfigurationError: if there is no rule, or a schema is not valid."""
    return _validations.interceptors(vhost.name, settings.rules, complaint_of)


@hookimpl
def gateway_metrics(vhost: str) -> Sequence[MetricSource]:
    """Offer the numbers of checked and of invalid messages."""
    return _validations.metric_sources(vhost)
