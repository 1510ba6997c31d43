"""Comparison of arguments in a redeclaration, and RabbitMQ's error texts for differences."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Final

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Arguments, Value

#: The arguments of exchanges that a redeclaration must repeat; those of queues are in ``queue_arguments``.
COMPARED_EXCHANGE_ARGUMENTS: Final = (
    "alternate-exchange",
    "x-delayed-type",
    "x-message-deduplication",
    "x-cache-size",
    "x-cache-ttl",
)

_MISSING: Final = object()

#: The value of an argument that is absent.
_DEFAULTS: Final[Arguments] = {"x-queue-type": "classic"}


def require_equal(entity: str, property: str, received: object, current: object) -> None:
    """Check a fixed property of a redeclaration (R10). ``entity`` is for example ``queue 'q' in vhost '/'``."""
    if received != current:
        difference = f"received '{formatted(received)}' but current is '{formatted(current)}'"
        raise PreconditionFailed(f"inequivalent arg '{property}' for {entity}: {difference}")


def require_equivalent(entity: str, names: Iterable[str], received: Arguments, current: Arguments) -> None:
    """Check that the named arguments of a redeclaration have the same values, of any integer width (R50)."""
    for name in names:
        default = _DEFAULTS.get(name, _MISSING)
        new, old = received.get(name, default), current.get(name, default)
        if _same(new, old):
            continue
        if name in received and name in current:
            difference = f"received '{formatted(new)}' but current is '{formatted(old)}'"
        else:
            difference = f"received {_described(name, received)} but current is {_described(name, current)}"
        raise PreconditionFailed(f"inequivalent arg '{name}' for {entity}: {difference}")


def type_name(value: Value) -> str:
    """Return RabbitMQ's name for the type of a table value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "signedint" if -(2**31) <= value < 2**31 else "long"
    names: dict[type, str] = {
        float: "double",
        str: "longstr",
        bytes: "binary",
        Decimal: "decimal",
        datetime: "timestamp",
        list: "array",
        dict: "table",
    }
    return next((name for kind, name in names.items() if isinstance(value, kind)), "void")


def formatted(value: object) -> str:
    """Return a value as RabbitMQ formats it in its replies."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _same(new: object, old: object) -> bool:
    """Return whether two values have the same class and value: 10, 10.0 and ``True`` differ; integer widths do not."""
    return _class_of(new) == _class_of(old) and new == old


def _class_of(value: object) -> type:
    """Return the class for comparison: integers of every width are of one class."""
    return int if isinstance(value, int) and not isinstance(value, bool) else type(value)


def _described(name: str, arguments: Arguments) -> str:
    if name not in arguments:
        return "none"
    return f"the value '{formatted(arguments[name])}' of type '{type_name(arguments[name])}'"
