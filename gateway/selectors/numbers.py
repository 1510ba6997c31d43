"""Numbers of a selector: which values are numbers, and arithmetic on them.

Integers stay integers and division cuts off toward zero, as Java's does (JMS 2.0, 3.8.1.1). What Java would raise for,
or wrap around, is unknown here: division by zero and whole results beyond 64 bits. So is arithmetic on anything else.
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
    """Text that stands for a number or a truth where one is asked for: what STOMP's clients send is all text."""

    __slots__ = ()


def is_number(value: Operand) -> TypeGuard[Number]:
    """Whether a value is a number; a truth is none, whatever Python says."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def number_of(value: Operand) -> Number | None:
    """Return the number that a value is or, if it may be converted, stands for."""
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
    """Return what comes out when each step's operator and operand are applied to what came out before."""
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
