"""Selectors compiled by RabbitMQ's JMS client: the expression as the text of an Erlang term.

``JMSType = 'car' AND weight > 2500`` comes as
``{'and',{'=',{'ident',<<"JMSType">>},<<"car">>},{'>',{'ident',<<"weight">>},2500}}.``
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from gateway.selectors.comparisons import among, between, comparison, is_null, like, not_between
from gateway.selectors.errors import SelectorError
from gateway.selectors.expressions import Expression, ValueKind, identifier, literal, require
from gateway.selectors.logic import all_of, any_of, negation
from gateway.selectors.numbers import computed, signed

MAX_DEPTH: Final = 100


class Atom(NamedTuple):
    """An Erlang atom."""

    name: str


class Tuple(NamedTuple):
    """Terms in braces, and their position."""

    position: int
    items: "list[Term]"


Term: TypeAlias = "Atom | Tuple | list[Term] | str | int | float"

_TOKEN: Final = re.compile(
    r"""\s*(?:
    <<"(?P<text>(?:[^"\\]|\\.)*)">>
  | '(?P<quoted>(?:[^'\\]|\\.)*)'
  | (?P<atom>[a-z]\w*)
  | (?P<float>[+-]?[0-9]+(?:\.[0-9]+(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+))
  | (?P<int>[+-]?[0-9]{1,20})
  | (?P<sign>[\[\]{},.])
  )\s*""",
    re.VERBOSE | re.DOTALL,
)


def expression_of_term(text: str) -> Expression:
    """Return the condition of a term. The final full stop is optional.

    :raises SelectorError: if it is not a condition.
    """
    condition = _expression(_Reader(text).term(), 0)
    require(ValueKind.CONDITION, condition)
    return condition


class _Reader:
    """Parses one term."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0

    def term(self) -> Term:
        term = self._term()
        if self._text[self._position :].strip() not in ("", "."):
            raise SelectorError("unexpected text after the term", self._position)
        return term

    def _term(self) -> Term:
        begin = self._position
        group, written = self._token()
        match group:
            case "text":
                return re.sub(r"\\(.)", r"\1", written, flags=re.DOTALL)
            case "quoted" | "atom":
                return Atom(written)
            case "float":
                return float(written)
            case "int":
                return int(written)
        if written == "{":
            return Tuple(begin, list(self._items("}")))
        if written == "[":
            return list(self._items("]"))
        raise SelectorError("not an Erlang term", begin)

    def _items(self, closing: str) -> Iterator[Term]:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SelectorError(f"nested more than {MAX_DEPTH} deep", self._position)
        if self._text.startswith(closing, self._position):
            self._token()
        else:
            sign = ","
            while sign == ",":
                yield self._term()
                begin = self._position
                _, sign = self._token()
            if sign != closing:
                raise SelectorError(f"expected {closing}", begin)
        self._depth -= 1

    def _token(self) -> tuple[str, str]:
        found = _TOKEN.match(self._text, self._position)
        if found is None:
            raise SelectorError("not an Erlang term", self._position)
        self._position = found.end()
        return str(found.lastgroup), found[str(found.lastgroup)]


def _expression(term: Term, position: int) -> Expression:
    match term:
        case str() | int() | float():
            return literal(position, term)
        case Atom("true" | "false"):
            return literal(position, term.name == "true")
        case Tuple(position, [Atom("ident"), str(name)]):
            return identifier(position, name)
        case Tuple(position, [Atom(name), *operands]):
            return _operation(position, name, operands)
    raise SelectorError("no expression", position)


def _operation(position: int, name: str, operands: "list[Term]") -> Expression:
    def inner(term: Term) -> Expression:
        return _expression(term, position)

    match name, operands:
        case (("=" | "<>" | "<" | "<=" | ">" | ">="), [left, right]):
            return comparison(name, inner(left), inner(right))
        case (("+" | "-" | "*" | "/"), [left, right]):
            return computed(inner(left), [(name, inner(right))])
        case (("+" | "-"), [operand]):
            return signed(position, name, inner(operand))
        case (("and" | "or"), [left, right]):
            return (all_of if name == "and" else any_of)((inner(left), inner(right)))
        case "not", [operand]:
            return negation(position, inner(operand))
        case (("between" | "not_between"), [operand, Tuple(_, [Atom("range"), low, high])] | [operand, low, high]):
            return (between if name == "between" else not_between)(inner(operand), inner(low), inner(high))
        case (("is_null" | "not_null"), [operand]):
            return _unless("not_null", name, is_null(inner(operand)))
        case (("in" | "not_in"), [operand, [*texts]]):
            return _unless("not_in", name, among(inner(operand), _texts(texts, position)))
        case (("like" | "not_like"), [operand, str(pattern), escape]):
            return _unless("not_like", name, _like(position, inner(operand), pattern, escape))
    raise SelectorError(f"unknown operation '{name}' with {len(operands)} operands", position)


def _unless(negative: str, name: str, condition: Expression) -> Expression:
    return negation(condition.position, condition) if name == negative else condition


def _texts(terms: "Sequence[Term]", position: int) -> list[str]:
    texts = [term for term in terms if isinstance(term, str)]
    if len(texts) < len(terms):
        raise SelectorError("a list whose items are not all texts", position)
    return texts


def _like(position: int, operand: Expression, pattern: str, escape: Term) -> Expression:
    if escape != Atom("no_escape") and not (isinstance(escape, str) and len(escape) == 1):
        raise SelectorError("an escape that is not one character", position)
    try:
        return like(operand, pattern, escape if isinstance(escape, str) else None)
    except ValueError as error:
        raise SelectorError(str(error), position) from None
