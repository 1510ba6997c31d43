"""Comparisons of values (JMS 2.0, 3.8.1.1). Values of different types compare as false, unknown values as unknown.

Numbers are ordered; text and booleans are only compared for equality.
"""

import operator
from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias

from gateway.selectors.expressions import Expression, Operand, ValueKind, Values, require, require_property
from gateway.selectors.like import like_pattern
from gateway.selectors.logic import all_of, any_of
from gateway.selectors.numbers import ConvertibleText, is_number, number_of

#: Compares two numbers, two texts or two booleans.
_Compare: TypeAlias = Callable[[object, object], bool]

EQUALITIES: Final[Mapping[str, _Compare]] = {"=": operator.eq, "<>": operator.ne}
ORDERS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def comparison(sign: str, left: Expression, right: Expression) -> Expression:
    """Return the comparison of two values by an operator in ``EQUALITIES`` or ``ORDERS``."""
    return _equality(sign, left, right) if sign in EQUALITIES else _order(sign, left, right)


def _equality(sign: str, left: Expression, right: Expression) -> Expression:
    compare, one, other = EQUALITIES[sign], left.value, right.value

    def value(values: Values) -> Operand:
        this, that = one(values), other(values)
        if this is None or that is None:
            return None
        this, that = _as_its_like(this, that), _as_its_like(that, this)
        return _are_alike(this, that) and compare(this, that)

    return Expression(left.position, ValueKind.CONDITION, value)


def _order(sign: str, left: Expression, right: Expression) -> Expression:
    compare, one, other = ORDERS[sign], require(ValueKind.NUMBER, left), require(ValueKind.NUMBER, right)

    def value(values: Values) -> Operand:
        this, that = one(values), other(values)
        if this is None or that is None:
            return None
        this, that = number_of(this), number_of(that)
        return this is not None and that is not None and compare(this, that)

    return Expression(left.position, ValueKind.CONDITION, value)


def _are_alike(this: Operand, that: Operand) -> bool:
    if isinstance(this, str):
        return isinstance(that, str)
    if isinstance(this, bool):
        return isinstance(that, bool)
    return is_number(this) and is_number(that)


def _as_its_like(value: Operand, other: Operand) -> Operand:
    """Return convertible text as the type of the other value."""
    if not isinstance(value, ConvertibleText):
        return value
    if isinstance(other, bool):
        return {"true": True, "false": False}.get(value.lower(), value)
    return number_of(value) if is_number(other) else value


def between(operand: Expression, low: Expression, high: Expression) -> Expression:
    """Return ``operand BETWEEN low AND high``, which is defined by comparisons."""
    return all_of((comparison(">=", operand, low), comparison("<=", operand, high)))


def not_between(operand: Expression, low: Expression, high: Expression) -> Expression:
    """Return ``operand NOT BETWEEN low AND high``, which is not the negation if the operand is not a number."""
    return any_of((comparison("<", operand, low), comparison(">", operand, high)))


def among(operand: Expression, texts: Collection[str]) -> Expression:
    """Return ``operand IN (texts)``."""
    part, wanted = require_property(operand), frozenset(texts)

    def value(values: Values) -> Operand:
        found = part(values)
        return None if found is None else isinstance(found, str) and found in wanted

    return Expression(operand.position, ValueKind.CONDITION, value)


def like(operand: Expression, pattern: str, escape: str | None) -> Expression:
    """Return ``operand LIKE pattern ESCAPE escape``; the escape is one character.

    :raises ValueError: if nothing follows an escape.
    """
    part, matches = require_property(operand), like_pattern(pattern, escape)

    def value(values: Values) -> Operand:
        found = part(values)
        return None if found is None else isinstance(found, str) and matches(found)

    return Expression(operand.position, ValueKind.CONDITION, value)


def is_null(operand: Expression) -> Expression:
    """Return ``operand IS NULL``, which is never unknown."""
    part = require_property(operand)
    return Expression(operand.position, ValueKind.CONDITION, lambda values: part(values) is None)
