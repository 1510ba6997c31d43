"""NOT, AND and OR of three values, by the tables of JMS 2.0, 3.8.1.2. What is neither true nor false is unknown."""

from collections.abc import Sequence

from gateway.selectors.expressions import Expression, Operand, ValueKind, Values, require


def all_of(conditions: Sequence[Expression]) -> Expression:
    """Return their AND: false if one is, else unknown if one is."""
    parts = tuple(require(ValueKind.CONDITION, condition) for condition in conditions)

    def value(values: Values) -> Operand:
        together: Operand = True
        for part in parts:
            one = part(values)
            if one is False:
                return False
            if one is not True:
                together = None
        return together

    return Expression(conditions[0].position, ValueKind.CONDITION, value)


def any_of(conditions: Sequence[Expression]) -> Expression:
    """Return their OR: true if one is, else unknown if one is."""
    parts = tuple(require(ValueKind.CONDITION, condition) for condition in conditions)

    def value(values: Values) -> Operand:
        together: Operand = False
        for part in parts:
            one = part(values)
            if one is True:
                return True
            if one is not False:
                together = None
        return together

    return Expression(conditions[0].position, ValueKind.CONDITION, value)


def negation(position: int, condition: Expression) -> Expression:
    """Return its NOT."""
    part = require(ValueKind.CONDITION, condition)

    def value(values: Values) -> Operand:
        one = part(values)
        return not one if isinstance(one, bool) else None

    return Expression(position, ValueKind.CONDITION, value)
