"""The expressions of a selector, which are evaluated for a message.

Logic has three values as in SQL-92 (JMS 2.0, 3.8.1.2): true, false and unknown. ``None`` is unknown, and the value
of a missing property.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol, TypeAlias

from gateway.selectors.errors import SelectorError


class Opaque(Enum):
    """A value that exists but supports no operator: bytes, an array, a table."""

    OPAQUE = "opaque"


Operand: TypeAlias = bool | int | float | str | Opaque | None


class Values(Protocol):
    """The values of identifiers in one message."""

    def value(self, name: str) -> Operand:
        """Return a property or header field, ``None`` if it does not exist."""
        ...


Evaluate: TypeAlias = Callable[[Values], Operand]


class ValueKind(Enum):
    """The type of an expression, as far as it is known at parse time."""

    CONDITION = "a condition"
    NUMBER = "a number"
    TEXT = "text"
    PROPERTY = "a property"


@dataclass(frozen=True, slots=True)
class Expression:
    """A part of a selector: its position, the type of its value, and its evaluation for a message."""

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
    """Return the expression of a literal."""
    return Expression(position, KIND_OF_LITERAL[type(value)], lambda values: value)


def identifier(position: int, name: str) -> Expression:
    """Return the expression of the property or header field of this name."""
    return Expression(position, ValueKind.PROPERTY, lambda values: values.value(name))


def require(kind: ValueKind, expression: Expression) -> Evaluate:
    """Return the evaluation of an expression that must have this type; a property may have any type.

    :raises SelectorError: if it never has this type.
    """
    if expression.kind not in (kind, ValueKind.PROPERTY):
        raise SelectorError(f"expected {kind.value} but found {expression.kind.value}", expression.position)
    return expression.value


def require_property(expression: Expression) -> Evaluate:
    """Return the evaluation of an expression that must be a property. :raises SelectorError: if it is not."""
    if expression.kind is not ValueKind.PROPERTY:
        raise SelectorError(f"expected a property but found {expression.kind.value}", expression.position)
    return expression.value
