"""Three-valued NOT, AND and OR by the tables of JMS 2.0, 3.8.1.2. A value that is not a boolean is unknown."""

from collections.abc import Sequence

from gateway.selectors.expressions import Expression, Operand, ValueKind, Values, require


def all_of(conditions: Sequence[Expression]) -> Expression:
    """Return the AND of conditions: false if one is false, otherwise unknown if one is unknown."""
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
    """Return the OR of conditions: true if one is true, otherwise unknown if one is unknown."""
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
    """Return the NOT of a condition."""
    part = require(ValueKind.CONDITION, condition)

    def value(values: Values) -> Operand:
        one = part(values)
        return not one if isinstance(one, bool) else None

    return Expression(position, ValueKind.CONDITION, value)
