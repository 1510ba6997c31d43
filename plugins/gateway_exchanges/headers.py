"""headers: routes to every binding whose arguments match the message's headers; the routing key is ignored.

A binding argument with a value requires that value, one without a value requires the header. ``x-match`` requires
``all`` of them (default) or ``any``. Other arguments with the prefix ``x-`` are ignored, unless ``x-match`` is
``all-with-x`` or ``any-with-x``. A binding without requirements matches every message with ``all`` and none with
``any``.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final

from gateway.api import Arguments, Binding, Destination, ExchangeTypes, Message, PreconditionFailed, Value, hookimpl

MATCHES: Final[Mapping[str, Callable[[Iterable[bool]], bool]]] = {
    "all": all,
    "any": any,
    "all-with-x": all,
    "any-with-x": any,
}

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


class Headers:
    """Checks the bindings one by one."""

    def __init__(self, arguments: Arguments) -> None:
        self._rules: dict[Binding, _Rule] = {}

    def bind(self, binding: Binding) -> None:
        """Add a binding. :raises PreconditionFailed: if its ``x-match`` is not one of the four values."""
        self._rules[binding] = _Rule(binding.arguments)

    def unbind(self, binding: Binding) -> None:
        """Remove a binding."""
        del self._rules[binding]

    def route(self, message: Message) -> list[Destination]:
        """Return the destinations of a message."""
        headers = {name: comparable(value) for name, value in message.headers.items()}
        return [binding.destination for binding, rule in self._rules.items() if rule.matches(headers)]


class _Rule:
    """The requirements of one binding."""

    def __init__(self, arguments: Arguments) -> None:
        mode = _checked_mode(arguments.get("x-match", "all"))
        self._quantifier = MATCHES[mode]
        self._wanted = {
            name: comparable(value)
            for name, value in arguments.items()
            if name != "x-match" and (mode.endswith("-with-x") or not name.startswith("x-"))
        }

    def matches(self, headers: Mapping[str, object]) -> bool:
        """Whether headers, converted by ``comparable``, meet the requirements."""
        return self._quantifier(
            name in headers and (wanted is None or wanted == headers[name]) for name, wanted in self._wanted.items()
        )


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
    """Return a value in the form used for comparison: as in RabbitMQ, its content without its AMQP type.

    Numbers of different types are equal, a timestamp equals its seconds, text equals the same bytes. Unlike in Python,
    ``True`` differs from 1, and a decimal equals only a decimal of the same scale.
    """
    match value:
        case bool():
            return ("bool", value)
        case str():
            return value.encode()
        case datetime():
            return int(value.timestamp())
        case Decimal():
            return ("decimal", value.as_tuple())
        case list():
            return [comparable(item) for item in value]
        case dict():
            return {name: comparable(item) for name, item in value.items()}
    return value


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``headers``."""
    return {"headers": Headers}
