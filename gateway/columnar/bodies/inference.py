"""A JSON Schema that samples of bodies match, so that each of their parts has a column where it can.

A part that is null in a sample may be null; numbers are integers unless one has a fraction; a part with values of
several types states them all, and its column is JSON text. The fields that all samples have are required. A field
whose type no sample tells, such as one that is always null, is left out: a column of a guessed type could not change.
"""

import json
from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime
from typing import Any, Final, TypeAlias

Json: TypeAlias = Any
"""A value that JSON can hold."""

DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"

#: An object with more names than this has no columns: its names are data.
MOST_NAMES: Final = 200

#: Samples nested deeper than this are not described.
_DEEPEST: Final = 50

_LARGEST: Final = 2**63


class Shape:
    """The types and fields that the samples of one part have."""

    def __init__(self) -> None:
        self.count = 0
        self._objects = 0
        self._types: set[str] = set()
        self._formats: set[str] | None = None  # those that all strings so far have
        self._fields: dict[str, Shape] = {}
        self._item: Shape | None = None

    def add(self, value: Json, depth: int = 0) -> None:
        """Take one more sample into account. :raises ValueError: if it is nested too deep."""
        if depth > _DEEPEST:
            raise ValueError(f"nested deeper than {_DEEPEST} levels")
        self.count += 1
        kind = _type_of(value)
        self._types.add(kind)
        if kind == "string":
            formats = _formats_of(value)
            self._formats = formats if self._formats is None else self._formats & formats
        elif kind == "array":
            self._item = self._item or Shape()
            for item in value:
                self._item.add(item, depth + 1)
        elif kind == "object":
            self._objects += 1
            for name, inner in value.items():
                self._fields.setdefault(name, Shape()).add(inner, depth + 1)

    def schema(self) -> dict[str, Json] | None:
        """Return the schema of the part; ``None`` if no sample tells its type."""
        types = set(self._types)
        if "number" in types:
            types.discard("integer")
        given = types - {"null"}
        if not given:
            return None
        schema: dict[str, Json] = {"type": sorted(types)[0] if len(types) == 1 else sorted(types)}
        if len(given) > 1:
            return schema
        [kind] = given
        if kind == "string" and self._formats:
            schema["format"] = sorted(self._formats)[0]
        elif kind == "array":
            items = None if self._item is None else self._item.schema()
            return None if items is None else {**schema, "items": items}
        elif kind == "object":
            return {**schema, **self._object()}
        return schema

    def _object(self) -> dict[str, Json]:
        if len(self._fields) > MOST_NAMES:
            return {"additionalProperties": _merged(self._fields.values()).schema() or {}}
        required = [name for name, shape in self._fields.items() if shape.count == self._objects]
        schemas = ((name, shape.schema()) for name, shape in self._fields.items())
        properties = {name: schema for name, schema in schemas if schema is not None}
        return {"properties": properties, **({"required": required} if required else {})}

    def take(self, other: "Shape") -> None:
        """Take the samples of another part into account."""
        self.count += other.count
        self._objects += other._objects
        self._types |= other._types
        if other._formats is not None:
            self._formats = other._formats if self._formats is None else self._formats & other._formats
        for name, shape in other._fields.items():
            self._fields.setdefault(name, Shape()).take(shape)
        if other._item is not None:
            self._item = self._item or Shape()
            self._item.take(other._item)


def _merged(shapes: Iterable[Shape]) -> Shape:
    merged = Shape()
    for shape in shapes:
        merged.take(shape)
    return merged


def _type_of(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer" if -_LARGEST <= value < _LARGEST else "number"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _formats_of(value: str) -> set[str]:
    """Return the formats of a string that have columns of their own."""
    if len(value) == len("2026-01-31"):
        return {"date"} if _is(date, value) else set()
    is_moment = "T" in value and _is(datetime, value) and datetime.fromisoformat(value).tzinfo is not None
    return {"date-time"} if is_moment else set()


def _is(kind: type[date] | type[datetime], value: str) -> bool:
    try:
        kind.fromisoformat(value)
    except ValueError:
        return False
    return True


class Inference:
    """The schema of samples. ``refused`` counts those that are not JSON, by reason."""

    def __init__(self) -> None:
        self._shape = Shape()
        self.refused: Counter[str] = Counter()

    @property
    def samples(self) -> int:
        """The number of samples that the schema describes."""
        return self._shape.count

    def add(self, body: bytes) -> None:
        """Take one more body into account."""
        try:
            value = json.loads(body, parse_constant=_refuse_constant)
            Shape().add(value)  # before a part of it changes the shape
        except (ValueError, RecursionError) as error:
            self.refused[f"not JSON: {str(error)[:100]}"] += 1
            return
        self._shape.add(value)

    def schema(self) -> dict[str, Json]:
        """Return the JSON Schema."""
        return {"$schema": DRAFT, **(self._shape.schema() or {})}


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")
