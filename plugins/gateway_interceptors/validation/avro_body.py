"""Checks of bodies in Avro's binary encoding, without decoding them to values.

They are bounded in depth, and in work by the size of the body, which the reader of ``fastavro`` is not. Logical types
are not checked.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from gateway.api import body_formats

AvroBody = body_formats.AvroBody

#: The steps of a path that a reason has.
_SHOWN: Final = 8


class Invalid(Exception):
    """A body does not match its schema. ``path`` has the steps to the place of the fault, the innermost first."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []

    def __str__(self) -> str:
        steps = self.path[::-1]
        if len(steps) > _SHOWN:
            steps = [*steps[: _SHOWN - 2], "...", steps[-1]]
        return f"${''.join(steps)}: {self.reason}"


Check = Callable[[AvroBody], object]
"""Moves the body behind one value. Raises ``Invalid``."""


class AvroChecks:
    """Makes the checks of a schema that ``fastavro`` has parsed. ``named`` has the named types that it refers to."""

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._check_by_name: dict[str, Check] = {}

    def of(self, schema: Any) -> Check:  # Any: JSON
        """Return the check of a schema or of the name of a type."""
        if isinstance(schema, list):
            return _union([self.of(branch) for branch in schema])
        if isinstance(schema, str):
            return SIMPLE.get(schema) or self._by_name(schema)
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._record(schema)
        if kind == "array":
            return _blocks(self.of(schema["items"]), lambda body: f"[{body}]", None)
        if kind == "map":
            return _blocks(self.of(schema["values"]), lambda key: f".{key}", _string)
        if kind == "enum":
            return self._remembered(schema, _enum(len(schema["symbols"])))
        if kind == "fixed":
            return self._remembered(schema, _fixed(int(schema["size"])))
        return self.of(kind)

    def _by_name(self, name: str) -> Check:
        """Return the check of a named type, which may be one that refers to itself and is not complete yet."""
        check = self._check_by_name.get(name)
        if check is None:
            return self.of(self._named[name])
        return check if check is not _unfinished else lambda body: self._check_by_name[name](body)

    def _remembered(self, schema: Any, check: Check) -> Check:
        self._check_by_name[schema["name"]] = check
        return check

    def _record(self, schema: Any) -> Check:
        name = schema["name"]
        self._check_by_name[name] = _unfinished
        fields = [(f".{field['name']}", self.of(field["type"])) for field in schema["fields"]]
        return self._remembered(schema, _record(fields))


def _unfinished(body: AvroBody) -> object:
    raise AssertionError("a check is used before its schema is complete")


def _null(body: AvroBody) -> object:
    return None


def _boolean(body: AvroBody) -> object:
    if (byte := body.take(1)[0]) > 1:
        raise Invalid(f"the byte {byte} is no boolean")
    return None


def _string(body: AvroBody) -> str:
    try:
        return body.take(body.number()).decode()
    except UnicodeDecodeError:
        raise Invalid("a string that is not UTF-8") from None


#: The checks of primitive types.
SIMPLE: Final[Mapping[str, Check]] = {
    "null": _null,
    "boolean": _boolean,
    "int": lambda body: body.number(32),
    "long": lambda body: body.number(),
    "float": lambda body: body.take(4),
    "double": lambda body: body.take(8),
    "bytes": lambda body: body.take(body.number()),
    "string": _string,
}


def _fixed(size: int) -> Check:
    return lambda body: body.take(size)


def _enum(count: int) -> Check:
    def check(body: AvroBody) -> object:
        index = body.number(32)
        if not 0 <= index < count:
            raise Invalid(f"symbol {index} of an enum with {count} symbols")
        return None

    return check


def _union(branches: list[Check]) -> Check:
    def check(body: AvroBody) -> object:
        index = body.number()
        if not 0 <= index < len(branches):
            raise Invalid(f"branch {index} of a union with {len(branches)} branches")
        body.enter()
        branches[index](body)
        body.leave()
        return None

    return check


def _record(fields: list[tuple[str, Check]]) -> Check:
    def check(body: AvroBody) -> object:
        body.enter()
        at = ""
        try:
            for step, field in fields:
                at = step
                field(body)
        except Invalid as error:
            error.path.append(at)
            raise
        body.leave()
        return None

    return check


def _blocks(item: Check, step_of: Callable[[object], str], key: Callable[[AvroBody], str] | None) -> Check:
    """Return the check of an array, or with ``key`` of a map: blocks of items, each with its number of items."""

    def check(body: AvroBody) -> object:
        body.enter()
        number = 0
        step: object = 0
        try:
            while count := body.items():
                for _ in range(count):
                    step = number if key is None else key(body)
                    item(body)
                    number += 1
        except Invalid as error:
            error.path.append(step_of(step))
            raise
        body.leave()
        return None

    return check
