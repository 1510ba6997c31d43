"""Checks of bodies in Avro's binary encoding, without decoding them to values.

The reader of ``fastavro`` is for data of a trusted writer: nested records of 16 KiB end the process, an array of nulls
takes memory without limit, and negative indexes of enums and unions are accepted. These checks are bounded in depth,
and in work by the size of the body. Logical types are not checked.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

#: The levels of records, arrays, maps and unions of a body.
_DEEPEST: Final = 100

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


class Body:
    """The bytes of a body, and the position and depth of the check. ``items_left`` bounds items of no bytes."""

    __slots__ = ("at", "data", "depth", "items_left")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.depth = 0
        self.items_left = len(data)

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes."""
        end = self.at + size
        if size < 0:
            raise Invalid(f"a size of {size} bytes")
        if end > len(self.data):
            raise Invalid(f"{size} bytes expected, {len(self.data) - self.at} left")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def number(self, bits: int = 64) -> int:
        """Return the next integer, in zigzag encoding."""
        raw = shift = 0
        while True:
            (byte,) = self.take(1)
            raw |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
            if shift >= bits:
                raise Invalid(f"an integer of more than {bits} bits")
        if raw >> bits:
            raise Invalid(f"an integer of more than {bits} bits")
        return (raw >> 1) ^ -(raw & 1)

    def enter(self) -> None:
        """Count one more level."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise Invalid(f"nested deeper than {_DEEPEST} levels")

    def leave(self) -> None:
        """Count one level less."""
        self.depth -= 1


Check = Callable[[Body], object]
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


def _unfinished(body: Body) -> object:
    raise AssertionError("a check is used before its schema is complete")


def _null(body: Body) -> object:
    return None


def _boolean(body: Body) -> object:
    if (byte := body.take(1)[0]) > 1:
        raise Invalid(f"the byte {byte} is no boolean")
    return None


def _string(body: Body) -> str:
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
    def check(body: Body) -> object:
        index = body.number(32)
        if not 0 <= index < count:
            raise Invalid(f"symbol {index} of an enum with {count} symbols")
        return None

    return check


def _union(branches: list[Check]) -> Check:
    def check(body: Body) -> object:
        index = body.number()
        if not 0 <= index < len(branches):
            raise Invalid(f"branch {index} of a union with {len(branches)} branches")
        body.enter()
        branches[index](body)
        body.leave()
        return None

    return check


def _record(fields: list[tuple[str, Check]]) -> Check:
    def check(body: Body) -> object:
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


def _blocks(item: Check, step_of: Callable[[object], str], key: Callable[[Body], str] | None) -> Check:
    """Return the check of an array, or with ``key`` of a map: blocks of items, each with its number of items."""

    def check(body: Body) -> object:
        body.enter()
        number = 0
        step: object = 0
        try:
            while count := body.number():
                if count < 0:
                    count = -count
                    body.number()  # the size of the block in bytes, for readers that skip it
                body.items_left -= count
                if body.items_left < 0:
                    raise Invalid("more items than bytes")
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
