"""interceptor-json-schema: refuses bodies that do not match a JSON Schema, or diverts them to a quarantine queue.

Needs the library ``jsonschema-rs``: ``pip install 'gateway-broker[json-schema]'``. It is compiled, and it matches
regular expressions in linear time: with the library ``jsonschema``, 40 bytes can keep the reactor busy for hours.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from pydantic import Field

from gateway.api import (
    ConfigurationError,
    Interceptor,
    MetricSource,
    PluginSettings,
    TracedVhost,
    body_formats,
    hookimpl,
)
from gateway_interceptors.validation.validation import Complaint, ValidationRule, Validations, missing

_validations: Final = Validations()


class SchemaRule(ValidationRule):
    """The schema of the messages that are published to one exchange."""

    schema_: dict[str, Any] = Field(alias="schema")
    """The JSON Schema, a table, of draft 2020-12 or of the draft that ``$schema`` names."""


class SchemaSettings(PluginSettings):
    """The settings of ``interceptor-json-schema``."""

    rules: list[SchemaRule] = []
    """The rules; the first that matches a message applies, and a message without a rule passes."""


def complaint_of(rule: SchemaRule) -> Complaint:
    """Return the check of a schema. :raises ConfigurationError: if it is not valid, or the library is missing."""
    try:
        from jsonschema_rs import RegexOptions, ValidationError, validator_for
    except ImportError:
        raise missing("jsonschema-rs", "json-schema") from None
    try:
        validator = validator_for(rule.schema_, pattern_options=RegexOptions(), retriever=body_formats.fetch_no_schema)
    except ValidationError as error:
        raise ConfigurationError(
            f"the schema is not valid at {body_formats.json_place(error.instance_path)}: {error.message}"
        ) from None
    except ValueError as error:
        raise ConfigurationError(f"the schema is not valid: {error}") from None

    def complaint(body: bytes) -> str:
        try:
            decoded = json.loads(body, parse_constant=_refuse_constant)
            if body_formats.is_deep_json(body, decoded):
                return f"it is nested deeper than {body_formats.DEEPEST_JSON} levels"
            error = next(validator.iter_errors(decoded), None)
        except (ValueError, RecursionError):  # ValueError: the library's answer to half a surrogate pair, too
            return "it is not JSON"
        return "" if error is None else f"{body_formats.json_place(error.instance_path)}: {error.message}"

    return complaint


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


@hookimpl
def gateway_settings_model() -> type[PluginSettings]:
    """Describe the rules."""
    return SchemaSettings


@hookimpl
def gateway_interceptors(vhost: TracedVhost, settings: SchemaSettings) -> Sequence[Interceptor]:
    """Offer the interceptor. :raises ConfigurationError: if there is no rule, or a schema is not valid."""
    return _validations.interceptors(vhost.name, settings.rules, complaint_of)


@hookimpl
def gateway_metrics(vhost: str) -> Sequence[MetricSource]:
    """Offer the numbers of checked and of invalid messages."""
    return _validations.metric_sources(vhost)
