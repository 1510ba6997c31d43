"""The requirements of the bindings of a headers exchange, and the form in which values are compared."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final

from gateway.api import Arguments, PreconditionFailed, Value

MATCHES: Final = frozenset({"all", "any", "all-with-x", "any-with-x"})

#: RabbitMQ's names for the types of an invalid ``x-match``.
TYPE_NAMES: Final[Mapping[type, str]] = {
    type(None): "void",
    bool: "bool",
    int: "signedint",
    float: "double",
    bytes: "binary",
    Decimal: "decimal",
    datetime: "timestamp",
    list: "array",
    dict: "table",
}


class Requirements:
    """The requirements of a binding, in the order of their names.

    ``wanted`` has each name with its value, ``None`` if any value will do. ``valued`` are the names with a value,
    ``values`` these, and ``present`` the other names. One of them is enough if ``is_any``.
    """

    __slots__ = ("is_any", "present", "valued", "values", "wanted")

    def __init__(self, is_any: bool, wanted: list[tuple[str, object]]) -> None:
        self.is_any = is_any
        self.wanted = wanted
        self.valued = tuple([name for name, value in wanted if value is not None])
        self.values = tuple([value for _, value in wanted if value is not None])
        self.present = tuple([name for name, value in wanted if value is None])


class ComparedHeaders:
    """The headers of a message. ``value`` returns one in the form for comparison, converted on first use."""

    __slots__ = ("_converted", "names")

    def __init__(self, headers: Mapping[str, Value]) -> None:
        self.names = headers
        self._converted: dict[str, object] = {}

    def value(self, name: str) -> object:
        """Return the value of a header; ``None`` if it is missing, has no value, or one that equals none (NaN)."""
        converted = self._converted.get(name)
        if converted is None:
            value = self.names.get(name)
            if value is not None and value == value:  # NaN does not equal itself
                converted = self._converted[name] = comparable(value)
        return converted


def requirements_of(arguments: Arguments) -> Requirements:
    """Return what a binding with these arguments requires.

    :raises PreconditionFailed: if its ``x-match`` is not one of the four values.
    """
    mode = _checked_mode(arguments.get("x-match", "all"))
    wanted = [
        (name, comparable(value))
        for name, value in sorted(arguments.items())
        if name != "x-match" and (mode.endswith("-with-x") or not name.startswith("x-"))
    ]
    return Requirements(mode.startswith("any"), wanted)


def _checked_mode(mode: Value) -> str:
    if not isinstance(mode, str):
        shown = "undefined" if mode is None else str(mode).lower()
        kind = TYPE_NAMES[type(mode)]
        raise PreconditionFailed(f"Invalid x-match field type {kind} (value {shown}); expected longstr")
    if mode not in MATCHES:
        shown = f'<<"{mode}">>' if mode else "<<>>"
        raise PreconditionFailed(f"Invalid x-match field value {shown}; expected all, any, all-with-x, or any-with-x")
    return mode


def comparable(value: Value) -> object:
    """Return a value in the form used for comparison: as in RabbitMQ, its content without its AMQP type. It has a hash.

    Numbers of different types are equal, a timestamp equals its seconds, text equals the same bytes. Unlike in Python,
    ``True`` differs from 1, and a decimal equals only a decimal of the same scale.
    """
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int | float | bytes):
        return value
    if isinstance(value, datetime):
        return int(value.timestamp())
    if isinstance(value, Decimal):
        return ("decimal", value.as_tuple())
    if isinstance(value, list):
        return ("list", tuple([comparable(item) for item in value]))
    if isinstance(value, dict):
        return ("table", frozenset([(name, comparable(item)) for name, item in value.items()]))
    return value
