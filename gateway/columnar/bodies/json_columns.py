"""The columns of a JSON Schema: the Arrow type of each part, and the conversion of its values.

A part that states one type has a column of it. A part that may have several types, that refers to itself, or that says
nothing about its type is kept as JSON text. The schema is checked before: values have the types that it states.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa

from gateway.columnar.bodies.body_schema import TIMESTAMP, BodyRefused, list_of
from gateway.kernel.errors import ConfigurationError

Json: TypeAlias = Any
"""A value that JSON can hold."""

#: ``format`` of exact numbers: their digits, and those after the point.
_DECIMAL: Final = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)")

_MOST_DIGITS: Final = 38

#: A decimal as a string.
_NUMBER: Final = re.compile(r"-?\d{1,80}(\.\d{1,80})?", re.ASCII)


class JsonPart(NamedTuple):
    """The type of one part of a schema, and the conversion of its values; ``None`` if they need none."""

    kind: pa.DataType
    convert: Callable[[Json], Any] | None


def json_text(value: Json) -> str | None:
    """Return a value as JSON text; null stays null."""
    return None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=float)


TEXT: Final = JsonPart(pa.string(), json_text)
"""A part without a type of its own."""


class JsonColumns:
    """The columns of one document. ``has_decimals`` is set once a part needs exact numbers."""

    def __init__(self, document: Json) -> None:
        self._document = document
        self._open = {"#"}
        self.has_decimals = False

    def part(self, schema: Json) -> JsonPart:
        """Return the type and the conversion of a part."""
        if not isinstance(schema, dict):
            return TEXT
        if isinstance(reference := schema.get("$ref"), str):
            return self._referred(reference)
        for word in ("anyOf", "oneOf"):
            if isinstance(choices := schema.get(word), list) and "type" not in schema:
                given = [choice for choice in choices if choice != {"type": "null"}]
                return self.part(given[0]) if len(given) == 1 else TEXT
        return self._typed(_stated_type(schema), schema)

    def _referred(self, reference: str) -> JsonPart:
        """Return the part that a reference within the document names; one that contains itself is text."""
        if reference in self._open or not reference.startswith("#"):
            return TEXT
        target = self._document
        for step in reference[1:].split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            target = target.get(step) if isinstance(target, dict) else None
        self._open.add(reference)
        try:
            return self.part(target)
        finally:
            self._open.remove(reference)

    def _typed(self, kind: str, schema: Mapping[str, Json]) -> JsonPart:
        written = schema.get("format")
        if kind in ("string", "number", "integer") and isinstance(written, str) and written.startswith("decimal"):
            return self._decimal(written)
        match kind:
            case "string":
                return _STRINGS.get(written, JsonPart(pa.string(), None)) if isinstance(written, str) else _STRING
            case "integer":
                return JsonPart(pa.int32() if written == "int32" else pa.int64(), None)
            case "number":
                return JsonPart(pa.float64(), _as_float)
            case "boolean":
                return JsonPart(pa.bool_(), None)
            case "array":
                return self._list(schema)
            case "object":
                return self._object(schema)
            case _:
                return TEXT

    def _decimal(self, written: str) -> JsonPart:
        match = _DECIMAL.fullmatch(written)
        if match is None or not 1 <= (digits := int(match[1])) <= _MOST_DIGITS or (scale := int(match[2])) > digits:
            raise ConfigurationError(f"the format {written!r} is not decimal(DIGITS,SCALE) with 1 to 38 digits")
        self.has_decimals = True
        return JsonPart(pa.decimal128(digits, scale), _as_decimal)

    def _list(self, schema: Mapping[str, Json]) -> JsonPart:
        if not isinstance(schema.get("items"), dict) or "prefixItems" in schema:
            return TEXT
        item = self.part(schema["items"])
        return JsonPart(list_of(item.kind), _each(item.convert))

    def _object(self, schema: Mapping[str, Json]) -> JsonPart:
        properties, others = schema.get("properties"), schema.get("additionalProperties")
        if isinstance(properties, dict) and properties:
            return self._record(properties)
        if not isinstance(others, dict):
            return TEXT
        item = self.part(others)
        return JsonPart(pa.map_(pa.string(), item.kind), _pairs(item.convert))

    def _record(self, properties: Mapping[str, Json]) -> JsonPart:
        parts = {name: self.part(schema) for name, schema in properties.items()}
        kind = pa.struct([(name, part.kind) for name, part in parts.items()])
        converted = [(name, part.convert) for name, part in parts.items() if part.convert is not None]
        return JsonPart(kind, _fields(converted))


def _stated_type(schema: Mapping[str, Json]) -> str:
    """Return the one type of a part besides null; ``""`` if there are several, or none is stated."""
    stated = schema.get("type")
    if stated is None and isinstance(values := schema.get("enum"), list):
        stated = "string" if all(isinstance(value, str | None) for value in values) else None
    types = set(stated if isinstance(stated, list) else [stated]) - {"null", None}
    if types == {"integer", "number"}:
        return "number"
    return types.pop() if len(types) == 1 else ""


def _as_float(value: Json) -> float | None:
    return None if value is None else float(value)


def _as_decimal(value: Json) -> Decimal | None:
    if value is None or isinstance(value, int | Decimal):
        return None if value is None else Decimal(value)
    if not _NUMBER.fullmatch(value):
        raise BodyRefused(f"{value[:40]!r} is no number")
    return Decimal(value)


def _as_moment(value: Json) -> datetime | None:
    if value is None:
        return None
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise BodyRefused(f"{value[:40]!r} is a time without an offset")
    return moment


def _as_date(value: Json) -> date | None:
    return None if value is None else date.fromisoformat(value)


_STRING: Final = JsonPart(pa.string(), None)

#: Formats of strings that have columns of their own.
_STRINGS: Final[Mapping[str, JsonPart]] = {
    "date-time": JsonPart(TIMESTAMP, _as_moment),
    "date": JsonPart(pa.date32(), _as_date),
}


def _each(convert: Callable[[Json], Any] | None) -> Callable[[Json], Any] | None:
    if convert is None:
        return None
    return lambda values: None if values is None else [convert(value) for value in values]


def _pairs(convert: Callable[[Json], Any] | None) -> Callable[[Json], Any]:
    def pairs(values: Json) -> list[tuple[str, Any]] | None:
        if values is None:
            return None
        return [(name, value if convert is None else convert(value)) for name, value in values.items()]

    return pairs


def _fields(converted: list[tuple[str, Callable[[Json], Any]]]) -> Callable[[Json], Any] | None:
    """Return the conversion of some fields of an object, which was decoded for this and is changed in place."""
    if not converted:
        return None

    def fields(values: Json) -> Json:
        if values is not None:
            for name, convert in converted:
                if name in values:
                    values[name] = convert(values[name])
        return values

    return fields
