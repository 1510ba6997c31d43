"""The settings of a plugin: its model, the validation of values, and a description for the operator."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from pluggy import PluginManager
from pydantic import BaseModel, ConfigDict, ValidationError

from gateway.kernel.errors import ConfigurationError
from gateway.kernel.faults import shown

HOOK: Final = "gateway_settings_model"

_TYPES: Final[Mapping[str, str]] = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "none",
}

#: The limits of JSON Schema, and what they say about a value.
_BOUNDS: Final[Mapping[str, str]] = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "with at least {} characters",
    "maxLength": "with at most {} characters",
    "minItems": "with at least {} items",
    "maxItems": "with at most {} items",
    "pattern": "matching {}",
}


class PluginSettings(BaseModel):
    """Base class of the settings of a plugin: immutable, strictly typed, without unknown keys.

    The docstring below each field is its description in ``gatewayctl plugin describe``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True)


def settings_model(plugins: PluginManager, plugin: object) -> type[BaseModel] | None:
    """Return the model of a plugin's settings; ``None`` if it has none.

    :raises TypeError: if the hook returns something else. What the plugin raises is passed on.
    """
    caller = plugins.subset_hook_caller(HOOK, plugins.get_plugins() - {plugin})
    if not caller.get_hookimpls():
        return None
    models = caller()
    if len(models) == 1 and isinstance(models[0], type) and issubclass(models[0], BaseModel):
        return models[0]
    raise TypeError(f"{HOOK} returned {shown(models[0] if models else None)}, which is not a pydantic model")


def validated(model: type[BaseModel], values: Mapping[str, object]) -> BaseModel:
    """Return the settings as an instance of the model.

    :raises ConfigurationError: with one line for each wrong key: the key, the allowed values and the value.
    """
    unknown = [key for key in values if key not in _accepted(model)]
    if unknown and model.model_config.get("extra") != "allow":
        schema = model.model_json_schema()
        raise ConfigurationError("\n".join(_unknown(key, schema) for key in unknown))
    try:
        return model.model_validate(dict(values))
    except ValidationError as errors:
        schema = model.model_json_schema()
        raise ConfigurationError("\n".join(_line(error, schema) for error in errors.errors())) from None


def described_settings(model: type[BaseModel]) -> list[dict[str, object]]:
    """Return a row for each setting: ``name``, ``allowed``, ``default`` (absent if required) and ``description``."""
    schema = model.model_json_schema()
    return list(_rows(schema, schema, ""))


def secret_settings(model: type[BaseModel]) -> set[str]:
    """Return the names of the settings that must not be shown: ``SecretStr``, and tables and lists with one."""
    schema = model.model_json_schema()
    return {key for key, part in schema.get("properties", {}).items() if _is_secret(part, schema)}


def _is_secret(part: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    part = _resolved(part, schema)
    inner = [*part.get("anyOf", ()), *part.get("properties", {}).values()]
    inner += [each for key in ("additionalProperties", "items") if isinstance(each := part.get(key), Mapping)]
    return part.get("format") == "password" or any(_is_secret(each, schema) for each in inner)


def _rows(part: Mapping[str, Any], schema: Mapping[str, Any], prefix: str) -> Iterator[dict[str, object]]:
    required = part.get("required", ())
    for key, raw in part.get("properties", {}).items():
        found = _resolved(raw, schema)
        if "properties" in found:
            yield from _rows(found, schema, f"{prefix}{key}.")
            continue
        row: dict[str, object] = {"name": f"{prefix}{key}", "allowed": allowed(found, schema)}
        if key not in required:
            row["default"] = raw.get("default")
        yield row | {"description": " ".join(str(raw.get("description", "")).split())}


def allowed(part: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return the values that a part of a JSON schema allows, in words."""
    part = _resolved(part, schema)
    if "const" in part:
        return repr(part["const"])
    if "enum" in part:
        return _either([repr(value) for value in part["enum"]])
    if "anyOf" in part:
        return _either([allowed(option, schema) for option in part["anyOf"]])
    kind = _TYPES.get(str(part.get("type")), "another value")
    if kind == "a list" and part.get("items"):
        kind = f"a list, each item {allowed(part['items'], schema)}"
    if "properties" in part:
        kind = f"a table of {', '.join(part['properties'])}"
    return " ".join(
        [kind, " and ".join(text.format(part[key]) for key, text in _BOUNDS.items() if key in part)]
    ).strip()


def _either(options: list[str]) -> str:
    return " or ".join(dict.fromkeys(options))


def _resolved(part: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference to a nested model."""
    reference = part.get("$ref")
    if reference is None:
        return part
    definition: Mapping[str, Any] = schema["$defs"][reference.rsplit("/", 1)[-1]]
    return definition


def _accepted(model: type[BaseModel]) -> set[str]:
    """Return the keys that a model reads: names of fields and their aliases."""
    fields = model.model_fields
    aliases = [alias for field in fields.values() for alias in (field.alias, field.validation_alias)]
    return {*fields, *(alias for alias in aliases if isinstance(alias, str))}


def _line(error: Any, schema: Mapping[str, Any]) -> str:  # Any: a TypedDict that pydantic does not export
    """Describe an error in one line: the key, the allowed values and the value."""
    keys = [part for part in error["loc"] if isinstance(part, str)]
    part, known = _resolved(schema, schema), []
    for key in keys:
        inside = _resolved(part, schema)
        if key not in inside.get("properties", {}):
            break  # a nested table's unknown key, or a branch of a union
        part = inside["properties"][key]
        known.append(key)
    name = ".".join(known)
    if error["type"] == "extra_forbidden":
        return _unknown(keys[-1], _resolved(part, schema), name)
    if error["type"] == "missing":
        return f"{name}: is required; must be {allowed(part, schema)}"
    if error["type"] in ("value_error", "assertion_error"):
        reason = error["msg"].split(", ", 1)[-1]
        return f"{name}: {reason}" if name else reason
    given = "" if _is_secret(part, schema) else f", not {shown(error['input'])}"
    return f"{name}: must be {allowed(part, schema)}{given}"


def _unknown(key: str, part: Mapping[str, Any], inside: str = "") -> str:
    """Describe an unknown key, and suggest a known one."""
    siblings = list(part.get("properties", {}))
    path = f"{inside}.{key}" if inside else key
    if close := get_close_matches(key, siblings, n=1):
        return f"{path}: no such setting; did you mean {close[0]}?"
    return f"{path}: no such setting; allowed here: {', '.join(siblings) or 'none'}"
