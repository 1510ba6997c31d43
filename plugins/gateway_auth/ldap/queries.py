"""Queries about users in a directory: a reduced form of those of RabbitMQ's LDAP plugin.

::

    query := true | false | in_group(DN) | attribute(NAME, VALUE) | match(TEXT, REGEX) | equals(TEXT, TEXT)
           | not(query) | and(query, ...) | or(query, ...) | for(KEY=VALUE: query, ...)

``${username}``, ``${user_dn}``, ``${vhost}``, ``${resource}``, ``${name}``, ``${permission}``, ``${routing_key}`` and
``${client_id}`` are replaced. ``for`` takes the first case that applies, and is false without one. An argument with a
comma or a parenthesis is put in double quotes.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, TypeVar

Variables: TypeAlias = Mapping[str, str]

T = TypeVar("T")

_TOKEN: Final = re.compile(r'\s*(?:"(?P<quoted>[^"]*)"|(?P<mark>[(),:])|(?P<word>[^\s"(),:][^"(),:]*))')
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")

VARIABLES: Final = frozenset(
    {"username", "user_dn", "vhost", "resource", "name", "permission", "routing_key", "client_id"}
)


class DirectoryView(Protocol):
    """The directory, as queries see it. It may raise; the query then has no answer."""

    def is_in_group(self, group: str, user_dn: str) -> bool:
        """Whether a group has the user as a member."""
        ...

    def has_value(self, dn: str, attribute: str, value: str) -> bool:
        """Whether an entry has a value of an attribute."""
        ...


class Query(Protocol):
    """Decides on a user."""

    def holds(self, directory: DirectoryView, variables: Variables) -> bool:
        """Whether it is true. May wait for the directory, so it is called in a thread."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """``true`` or ``false``."""

    value: bool

    def holds(self, directory: DirectoryView, variables: Variables) -> bool:
        """Return the value."""
        return self.value


@dataclass(frozen=True, slots=True)
class InGroup:
    """``in_group(DN)``."""

    group: str

    def holds(self, directory: DirectoryView, variables: Variables) -> bool:
        """Ask the directory."""
        return directory.is_in_group(filled_dn(self.group, variables), variables["user_dn"])


@dataclass(frozen=True, slots=True)
class HasAttribute:
    """``attribute(NAME, VALUE)`` of the user's entry."""

    attribute: str
    value: str

    def holds(self, directory: DirectoryView, variables: Variables) -> bool:
        """Ask the directory."""
        return directory.has_value(variables["user_dn"], self.attribute, filled(self.value, variables))


@dataclass(frozen=True, slots=True)
class TextMatch:
    """``match(TEXT, REGEX)``; the expression matches anywhere in the text unless it is anchored."""

    text: str
    pattern: re.Pattern[str]

    def holds(self, directory: DirectoryView, variables: Variables) -> bool:
        """Search the text."""
        return self.pattern.search(filled(self.text, variables)) is not None


@dataclass(frozen=True, slots=True)
class Equality:
    """``equals(TEXT, TEXT)``."""

    one: str
    other: str

    def holds(self, directory: DirectoryView, variables: Variables) -> bool:
        """Compare the texts."""
        return filled(self.one, variables) == filled(self.other, variables)


@dataclass(frozen=True, slots=True)
class Combination:
    """``and``, ``or`` and ``not``; ``decide`` is ``all``, ``any``, or its negation."""

    queries: tuple[Query, ...]
    is_all: bool
    is_negated: bool = False

    def holds(self, directory: DirectoryView, variables: Variables) -> bool:
        """Decide by as many of the queries as needed."""
        decide: Callable[..., bool] = all if self.is_all else any
        return decide(query.holds(directory, variables) for query in self.queries) is not self.is_negated


@dataclass(frozen=True, slots=True)
class Cases:
    """``for(KEY=VALUE: query, ...)``."""

    cases: tuple[tuple[str, str, Query], ...]

    def holds(self, directory: DirectoryView, variables: Variables) -> bool:
        """Decide by the first case that applies."""
        for key, value, query in self.cases:
            if variables[key] == value:
                return query.holds(directory, variables)
        return False


def filled(text: str, variables: Variables) -> str:
    """Replace the variables of a text."""
    return _VARIABLE.sub(lambda found: variables[found[1]], text)


def filled_dn(text: str, variables: Variables) -> str:
    """Replace the variables of a distinguished name; their values are escaped (RFC 4514, 2.4)."""
    return _VARIABLE.sub(
        lambda found: variables[found[1]] if found[1] == "user_dn" else escaped_value(variables[found[1]]), text
    )


def escaped_value(value: str) -> str:
    """Escape a value for a distinguished name (RFC 4514, 2.4)."""
    return "".join(f"\\{ord(each):02x}" if each in '\\,+"<>;=#\0' or each == " " else each for each in value)


def parse_query(text: str) -> Query:
    """Parse a query. :raises ValueError: with the reason, if it is invalid."""
    parser = _Parser(text)
    query = parser.query()
    parser.end()
    return query


class _Parser:
    """Reads one query, token by token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise ValueError(f"query {text!r}: cannot read {text[at:].strip()[:20]!r}")
            kind = found.lastgroup or ""
            self._tokens.append((kind, found[kind].strip() if kind == "word" else found[kind]))
            at = found.end()

    def query(self) -> Query:
        name = self._text_token()
        if name in ("true", "false"):
            return Constant(name == "true")
        self._mark("(")
        match name:
            case "in_group":
                found: Query = InGroup(self._argument())
            case "attribute":
                found = HasAttribute(self._argument(), self._second())
            case "equals":
                found = Equality(self._argument(), self._second())
            case "match":
                found = TextMatch(self._argument(), self._pattern())
            case "not":
                found = Combination((self.query(),), is_all=True, is_negated=True)
            case "and" | "or":
                found = Combination(tuple(self._listed(self.query)), is_all=name == "and")
            case "for":
                found = Cases(tuple(self._listed(self._case)))
            case _:
                raise ValueError(f"query {self._text!r}: unknown query {name!r}")
        self._mark(")")
        return found

    def end(self) -> None:
        if self._tokens:
            raise ValueError(f"query {self._text!r}: unexpected {self._tokens[0][1]!r}")

    def _listed(self, read: Callable[[], T]) -> list[T]:
        found = [read()]
        while self._tokens and self._tokens[0] == ("mark", ","):
            self._tokens.pop(0)
            found.append(read())
        return found

    def _case(self) -> tuple[str, str, Query]:
        key, equals, value = self._text_token().partition("=")
        if not equals or key.strip() not in VARIABLES:
            raise ValueError(f"query {self._text!r}: expected KEY=VALUE with one of {', '.join(sorted(VARIABLES))}")
        self._mark(":")
        return key.strip(), value.strip(), self.query()

    def _second(self) -> str:
        self._mark(",")
        return self._argument()

    def _pattern(self) -> re.Pattern[str]:
        text = self._second()
        try:
            return re.compile(text)
        except re.error as error:
            raise ValueError(f"query {self._text!r}: invalid regular expression {text!r}: {error}") from None

    def _argument(self) -> str:
        text = self._text_token()
        unknown = set(_VARIABLE.findall(text)) - VARIABLES
        if unknown:
            raise ValueError(f"query {self._text!r}: unknown variable {sorted(unknown)[0]!r}")
        return text

    def _text_token(self) -> str:
        kind, text = self._tokens.pop(0) if self._tokens else ("", "")
        if kind not in ("word", "quoted"):
            raise ValueError(f"query {self._text!r}: expected a word, not {text!r}")
        return text

    def _mark(self, mark: str) -> None:
        found = self._tokens.pop(0) if self._tokens else ("", "")
        if found != ("mark", mark):
            raise ValueError(f"query {self._text!r}: expected {mark!r}, not {found[1]!r}")
