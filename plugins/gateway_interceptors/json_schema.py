"""interceptor-json-schema: refuses bodies that do not match a JSON Schema, or diverts them to a quarantine queue.

Needs the library ``jsonschema``: ``pip install 'gateway-broker[json-schema]'``.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from pydantic import Field

from gateway.api import (
    ConfigurationError,
    Decision,
    Diversion,
    Interceptor,
    Message,
    Origin,
    PluginSettings,
    Refusal,
    RefusalCause,
    Value,
    hookimpl,
)

#: The header with the reason, of a message in quarantine.
REASON: Final = "x-quarantine-reason"
EXCHANGE: Final = "x-quarantine-exchange"
ROUTING_KEY: Final = "x-quarantine-routing-key"

_LONGEST: Final = 180

Complaint = Callable[[Any], str]
"""Returns what is wrong with a decoded body, ``""`` if nothing is."""


class SchemaRule(PluginSettings):
    """The schema of the messages that are published to one exchange."""

    exchange: str
    """The exchange. "" is the default exchange."""

    routing_key: str | None = None
    """Only messages with this key; none for all."""

    schema_: dict[str, Any] = Field(alias="schema")
    """The JSON Schema, a table, of draft 2020-12 or of the draft that ``$schema`` names."""

    quarantine: str = ""
    """The queue that gets invalid messages; empty to refuse them. It must exist."""

    max_body_bytes: int = Field(default=16_384, ge=1, le=1_048_576)
    """The size of the largest body; larger ones are invalid. The check of a large body delays all clients."""


class SchemaSettings(PluginSettings):
    """The settings of ``interceptor-json-schema``."""

    rules: list[SchemaRule] = []
    """The rules; the first that matches a message applies, and a message without a rule passes."""


class JsonSchema(Interceptor):
    """Refuses messages that do not match the schema of their exchange, or diverts them to the quarantine queue."""

    def __init__(self, rules: Sequence[SchemaRule]) -> None:
        self._rules = [(rule, complaint_of(rule.schema_)) for rule in rules]

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        """Return the message, a refusal with ``RefusalCause.PAYLOAD``, or the diversion to the quarantine queue."""
        for rule, complaint in self._rules:
            if message.exchange == rule.exchange and rule.routing_key in (None, message.routing_key):
                reason = _fault(message.body, rule, complaint)
                return self._invalid(message, rule, reason) if reason else message
        return message

    def _invalid(self, message: Message, rule: SchemaRule, reason: str) -> Decision:
        reason = _cut(f"the body is invalid: {reason}")
        if not rule.quarantine:
            return Refusal(reason, RefusalCause.PAYLOAD)
        headers: dict[str, Value] = {REASON: reason, EXCHANGE: message.exchange, ROUTING_KEY: message.routing_key}
        return Diversion("", rule.quarantine, message.edited(headers))


def complaint_of(schema: dict[str, Any]) -> Complaint:
    """Return the check of a schema. :raises ConfigurationError: if it is not valid, or the library is missing."""
    try:
        from jsonschema import SchemaError, validators
        from referencing import Registry
    except ImportError:
        hint = "pip install 'gateway-broker[json-schema]'"
        raise ConfigurationError(f"the library jsonschema is not installed: {hint}") from None
    kind = validators.validator_for(schema, default=validators.validator_for({}))
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise ConfigurationError(f"the schema is not valid at {error.json_path}: {error.message}") from None
    registry: Any = Registry()  # a reference to another document is an error: nothing is fetched
    validator = kind(schema, registry=registry)

    def complaint(body: Any) -> str:  # Any: what JSON can hold
        error = next(validator.iter_errors(body), None)
        return "" if error is None else f"{error.json_path}: {error.message}"

    return complaint


def _fault(body: bytes, rule: SchemaRule, complaint: Complaint) -> str:
    """Return what is wrong with a body, ``""`` if nothing is."""
    if len(body) > rule.max_body_bytes:
        return f"it has {len(body)} bytes, at most {rule.max_body_bytes} are allowed"
    try:
        decoded = json.loads(body)
    except (ValueError, RecursionError):
        return "it is not JSON"
    return complaint(decoded)


def _cut(text: str) -> str:
    """Return the text, cut to the size of a reason, in which many protocols allow 255 bytes."""
    return text if len(text.encode()) <= _LONGEST else text.encode()[:_LONGEST].decode(errors="ignore") + "..."


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the rules."""
    return SchemaSettings


@hookimpl
def gateway_interceptors(settings: SchemaSettings) -> Sequence[Interceptor]:
    """Offer the interceptor. :raises ConfigurationError: if there is no rule, or a schema is not valid."""
    if not settings.rules:
        raise ConfigurationError("'rules' must have at least one rule")
    return [JsonSchema(settings.rules)]
