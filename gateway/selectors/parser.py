"""A recursive-descent parser from tokens to an expression: one method for each level of precedence, lowest first."""

from collections.abc import Callable, Iterator
from typing import Final

from gateway.selectors.comparisons import EQUALITIES, ORDERS, among, between, comparison, is_null, like, not_between
from gateway.selectors.errors import SelectorError
from gateway.selectors.expressions import Expression, ValueKind, identifier, literal, require
from gateway.selectors.logic import all_of, any_of, negation
from gateway.selectors.numbers import computed, signed
from gateway.selectors.tokens import Sort, Token

#: Deepest nesting of parentheses, ``NOT`` and signs, to bound the stack.
MAX_DEPTH: Final = 50


class SelectorParser:
    """Parses one selector."""

    def __init__(self, tokens: Iterator[Token]) -> None:
        self._tokens = tokens
        self._token = next(tokens)
        self._depth = 0

    def selector(self) -> Expression:
        """Return the condition. :raises SelectorError: if the tokens do not form one."""
        condition = self._disjunction()
        if self._token.sort is not Sort.END:
            raise self._unexpected("an operator or the end")
        require(ValueKind.CONDITION, condition)
        return condition

    # Conditions

    def _disjunction(self) -> Expression:
        conditions = [self._conjunction()]
        while self._took("OR"):
            conditions.append(self._conjunction())
        return any_of(conditions) if len(conditions) > 1 else conditions[0]

    def _conjunction(self) -> Expression:
        conditions = [self._negation()]
        while self._took("AND"):
            conditions.append(self._negation())
        return all_of(conditions) if len(conditions) > 1 else conditions[0]

    def _negation(self) -> Expression:
        position = self._token.position
        if self._took("NOT"):
            return negation(position, self._deeper(self._negation))
        return self._comparison()

    def _comparison(self) -> Expression:
        operand = self._sum()
        if self._token.sort is Sort.SIGN and (self._token.value in EQUALITIES or self._token.value in ORDERS):
            return comparison(str(self._advance().value), operand, self._sum())
        if self._took("IS"):
            return self._nullity(operand)
        is_negated = self._took("NOT")
        if self._took("BETWEEN"):
            low = self._sum()
            self._expect("AND")
            return (not_between if is_negated else between)(operand, low, self._sum())
        if self._took("IN"):
            condition = among(operand, self._list())
        elif self._took("LIKE"):
            condition = self._likeness(operand)
        elif is_negated:
            raise self._unexpected("BETWEEN, IN or LIKE")
        else:
            return operand
        return negation(operand.position, condition) if is_negated else condition

    def _nullity(self, operand: Expression) -> Expression:
        is_negated = self._took("NOT")
        self._expect("NULL")
        return negation(operand.position, is_null(operand)) if is_negated else is_null(operand)

    def _list(self) -> list[str]:
        self._expect("(")
        texts = [self._text()]
        while self._took(","):
            texts.append(self._text())
        self._expect(")")
        return texts

    def _likeness(self, operand: Expression) -> Expression:
        position = self._token.position
        pattern, escape = self._text(), None
        if self._took("ESCAPE"):
            position = self._token.position
            escape = self._text()
            if len(escape) != 1:
                raise SelectorError("an escape that is not one character", position)
        try:
            return like(operand, pattern, escape)
        except ValueError as error:
            raise SelectorError(str(error), position) from None

    # Values

    def _sum(self) -> Expression:
        return self._computed(self._product, "+-")

    def _product(self) -> Expression:
        return self._computed(self._signed, "*/")

    def _computed(self, operand: Callable[[], Expression], signs: str) -> Expression:
        first = operand()
        steps = []
        while self._token.sort is Sort.SIGN and str(self._token.value) in signs:
            steps.append((str(self._advance().value), operand()))
        return computed(first, steps) if steps else first

    def _signed(self) -> Expression:
        token = self._token
        if self._took("+") or self._took("-"):
            return signed(token.position, str(token.value), self._deeper(self._signed))
        return self._primary()

    def _primary(self) -> Expression:
        if self._took("("):
            inner = self._deeper(self._disjunction)
            self._expect(")")
            return inner
        token = self._token
        if self._took("TRUE") or self._took("FALSE"):
            return literal(token.position, token.value == "TRUE")
        if token.sort not in (Sort.IDENTIFIER, Sort.TEXT, Sort.NUMBER):
            raise self._unexpected("a name or a value")
        self._advance()
        if token.sort is Sort.IDENTIFIER:
            return identifier(token.position, str(token.value))
        return literal(token.position, token.value)

    # Tokens

    def _deeper(self, parse: Callable[[], Expression]) -> Expression:
        if self._depth == MAX_DEPTH:
            raise SelectorError(f"nested more than {MAX_DEPTH} deep", self._token.position)
        self._depth += 1
        expression = parse()
        self._depth -= 1
        return expression

    def _advance(self) -> Token:
        token = self._token
        if token.sort is not Sort.END:
            self._token = next(self._tokens)
        return token

    def _took(self, wanted: str) -> bool:
        """Consume this keyword or sign if it is next; return whether it was."""
        stands_here = self._token.sort in (Sort.KEYWORD, Sort.SIGN) and self._token.value == wanted
        if stands_here:
            self._advance()
        return stands_here

    def _expect(self, wanted: str) -> None:
        if not self._took(wanted):
            raise self._unexpected(wanted)

    def _text(self) -> str:
        if self._token.sort is not Sort.TEXT:
            raise self._unexpected(Sort.TEXT.value)
        return str(self._advance().value)

    def _unexpected(self, wanted: str) -> SelectorError:
        sort, value, position = self._token
        found = str(value) if sort in (Sort.KEYWORD, Sort.SIGN) else sort.value
        return SelectorError(f"expected {wanted} but found {found}", position)
