"""What a selector is made of: expressions that find their values in a message.

Truth has three values as in SQL-92 (JMS 2.0, 3.8.1.2): true, false and unknown. ``None`` stands for unknown, and for
the value of a property that is not there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol, TypeAlias

from gateway.selectors.errors import SelectorError


class Opaque(Enum):
    """Stands for a value that is there, but that no operator knows: bytes, an array, a table."""

    OPAQUE = "opaque"


Operand: TypeAlias = bool | int | float | str | Opaque | None


class Values(Protocol):
    """The values that identifiers have in one message."""

    def value(self, name: str) -> Operand:
        """Return a property or header field, ``None`` if there is none of this name."""
        ...


Evaluate: TypeAlias = Callable[[Values], Operand]


class ValueKind(Enum):
    """What is known of a value before there is a message."""

    CONDITION = "a condition"
    NUMBER = "a number"
    TEXT = "text"
    PROPERTY = "a property"


@dataclass(frozen=True, slots=True)
class Expression:
    """A part of a selector: where it begins, of what kind its value is, and how to find it in a message."""

    position: int
    kind: ValueKind
    value: Evaluate


KIND_OF_LITERAL: Final = {
    bool: ValueKind.CONDITION,
    int: ValueKind.NUMBER,
    float: ValueKind.NUMBER,
    str: ValueKind.TEXT,
}


def literal(position: int, value: bool | int | float | str) -> Expression:
    """Return what stands for itself."""
    return Expression(position, KIND_OF_LITERAL[type(value)], lambda values: value)


def identifier(position: int, name: str) -> Expression:
    """Return the property or header field of this name."""
    return Expression(position, ValueKind.PROPERTY, lambda values: values.value(name))


def require(kind: ValueKind, expression: Expression) -> Evaluate:
    """Return how to find the value, which must be of this kind as far as can be said: a property may be anything.

    :raises SelectorError: when it never is.
    """
    if expression.kind not in (kind, ValueKind.PROPERTY):
        raise SelectorError(f"expected {kind.value} but found {expression.kind.value}", expression.position)
    return expression.value


def require_property(expression: Expression) -> Evaluate:
    """Return how to find the value of what must be a property. :raises SelectorError: when it is something else."""
    if expression.kind is not ValueKind.PROPERTY:
        raise SelectorError(f"expected a property but found {expression.kind.value}", expression.position)
    return expression.value
