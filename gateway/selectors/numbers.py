"""Numeric values of a selector and their arithmetic.

Integers stay integers and division truncates toward zero, as in Java (JMS 2.0, 3.8.1.1). Operations that raise or
overflow in Java are unknown here: division by zero and integer results beyond 64 bits. Arithmetic on values that
are not numbers is unknown too.
"""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, TypeGuard

from gateway.selectors.expressions import Expression, Operand, ValueKind, Values, require

Number: TypeAlias = int | float

LEAST: Final = -(2**63)
LARGEST: Final = 2**63 - 1

_NUMERAL: Final = re.compile(r"[+-]?(?:\d{1,18}|(\d{1,400}\.?\d{0,400}|\.\d{1,400})([eE][+-]?\d{1,4})?)", re.ASCII)


class ConvertibleText(str):
    """Text that is converted where a number or boolean is required: STOMP headers are all text."""

    __slots__ = ()


def is_number(value: Operand) -> TypeGuard[Number]:
    """Return whether a value is a number; a boolean is not, although Python's ``bool`` is an ``int``."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number_of(value: Operand) -> Number | None:
    """Return the number of a value, converted from text if allowed."""
    if is_number(value):
        return value
    if isinstance(value, ConvertibleText) and (numeral := _NUMERAL.fullmatch(value)):
        return float(value) if numeral[1] else int(value)
    return None


def signed(position: int, sign: str, operand: Expression) -> Expression:
    """Return ``+`` or ``-`` and the operand."""
    part = require(ValueKind.NUMBER, operand)

    def value(values: Values) -> Operand:
        number = number_of(part(values))
        return number if number is None or sign == "+" else -number

    return Expression(position, ValueKind.NUMBER, value)


def computed(first: Expression, steps: Sequence[tuple[str, Expression]]) -> Expression:
    """Return the left-to-right application of operators and operands to the first value."""
    start = require(ValueKind.NUMBER, first)
    parts = tuple((_OPERATORS[sign], require(ValueKind.NUMBER, operand)) for sign, operand in steps)

    def value(values: Values) -> Operand:
        result = number_of(start(values))
        for apply, part in parts:
            operand = number_of(part(values))
            if result is None or operand is None:
                return None
            result = _applied(apply, result, operand)
        return result

    return Expression(first.position, ValueKind.NUMBER, value)


def _applied(apply: Callable[[Number, Number], Number], left: Number, right: Number) -> Number | None:
    try:
        result = apply(left, right)
    except (ZeroDivisionError, OverflowError):
        return None
    return None if isinstance(result, int) and not LEAST <= result <= LARGEST else result


def _divided(left: Number, right: Number) -> Number:
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) is (right < 0) else -quotient
    return left / right


_OPERATORS: Final[Mapping[str, Callable[[Number, Number], Number]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
}
