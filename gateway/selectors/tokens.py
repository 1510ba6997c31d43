"""The tokenizer of selectors: words, literals and signs."""

import re
from collections.abc import Iterator
from enum import Enum
from math import isinf
from typing import Final, NamedTuple

from gateway.selectors.errors import SelectorError


class Sort(Enum):
    """The kind of a token; the value is its name in errors."""

    KEYWORD = "a keyword"
    IDENTIFIER = "a name"
    TEXT = "text in quotes"
    NUMBER = "a number"
    SIGN = "a sign"
    END = "the end"


class Token(NamedTuple):
    """One word, literal or sign: ``value`` is a keyword in capitals, a number, or the text without its quotes."""

    sort: Sort
    value: str | int | float
    position: int


KEYWORDS: Final = frozenset(
    {"AND", "OR", "NOT", "BETWEEN", "LIKE", "ESCAPE", "IN", "IS", "NULL", "TRUE", "FALSE"}
)  # fmt: skip

#: The largest integer, read before its sign is known.
_LARGEST: Final = 2**63
_LONGEST: Final = 64

#: Names may contain dots, as in RabbitMQ, and any character in double quotes, as in SQL-92. A leading 0 is octal, as
#: in Java.
_PATTERN: Final = r"""
    (?P<space>[ \t\n\r\f]+)
  | (?P<name>(?:[^\W\d]|\$)[\w$.{hyphen}]*)
  | "(?P<quoted>(?:[^"]|"")+)"
  | '(?P<text>(?:[^']|'')*)'
  | (?P<hexadecimal>0[xX][0-9a-fA-F]+)[lL]?(?![\w$.])
  | (?P<approximate>
        (?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?
      | [0-9]+[eE][+-]?[0-9]+
      | [0-9]+(?=[fFdD])
    )[fFdD]?(?![\w$.])
  | (?P<octal>0[0-7]+)[lL]?(?![\w$.])
  | (?P<exact>0|[1-9][0-9]*)[lL]?(?![\w$.])
  | (?P<sign><>|!=|<=|>=|[-+*/=<>(),])
"""
_PLAIN: Final = re.compile(_PATTERN.replace("{hyphen}", ""), re.VERBOSE)
_HYPHENATED: Final = re.compile(_PATTERN.replace("{hyphen}", "-"), re.VERBOSE)


def tokens(text: str, start: int = 0, *, has_hyphens: bool = False) -> Iterator[Token]:
    """Yield the tokens from a position on, and finally the end.

    :param has_hyphens: whether names may contain hyphens; a minus then needs a space before it.
    :raises SelectorError: at text that is not a token.
    """
    pattern = _HYPHENATED if has_hyphens else _PLAIN
    position = start
    while position < len(text):
        found = pattern.match(text, position)
        if found is None:
            raise SelectorError(_complaint(text, position), position)
        if found.lastgroup != "space":
            yield _token(str(found.lastgroup), found[str(found.lastgroup)], position)
        position = found.end()
    yield Token(Sort.END, "", position)


def _token(group: str, written: str, position: int) -> Token:
    match group:
        case "name" if written.upper() in KEYWORDS:
            return Token(Sort.KEYWORD, written.upper(), position)
        case "name":
            return Token(Sort.IDENTIFIER, written, position)
        case "quoted":
            return Token(Sort.IDENTIFIER, written.replace('""', '"'), position)
        case "text":
            return Token(Sort.TEXT, written.replace("''", "'"), position)
        case "sign":
            return Token(Sort.SIGN, "<>" if written == "!=" else written, position)
    return Token(Sort.NUMBER, _number(group, written, position), position)


def _number(group: str, written: str, position: int) -> int | float:
    if group == "approximate":
        approximate = float(written)
        if isinf(approximate):
            raise SelectorError("a number beyond 64 bits", position)
        return approximate
    if len(written) <= _LONGEST:  # Python refuses to parse very long integers
        exact = int(written, {"hexadecimal": 16, "octal": 8}.get(group, 10))
        if exact <= _LARGEST:
            return exact
    raise SelectorError("a number beyond 64 bits", position)


def _complaint(text: str, position: int) -> str:
    if text[position] in "'\"":
        return "a quote that is not closed"
    return (
        f"{text[position]!r} begins an invalid number"
        if text[position].isdigit()
        else "a character that selectors do not allow"
    )
