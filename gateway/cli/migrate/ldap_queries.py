"""Conversion of the queries of RabbitMQ's LDAP plugin, Erlang terms, to those of ``auth-ldap``."""

from typing import Any, Final

from gateway.cli.migrate.backends import Backends
from gateway.cli.migrate.erlang_terms import ErlangAtom, NotATerm, read_term, written
from gateway.cli.migrate.target import Tally, Target
from gateway.definitions.secrets import shown_text

#: The attributes of groups in which ``auth-ldap`` looks.
_MEMBERS: Final = ("member", "uniqueMember")


class UnknownQuery(ValueError):
    """A query that ``auth-ldap`` does not have; the text is the reason."""


#: The queries of one term, by the name in ``rabbitmq.conf`` of RabbitMQ 4.1.
_KEYS: Final = {
    "auth_ldap.queries.vhost_access": "vhost_access_query",
    "auth_ldap.queries.resource_access": "resource_access_query",
    "auth_ldap.queries.topic_access": "topic_access_query",
}
_TAGS: Final = "auth_ldap.queries.tags"
QUERIES: Final = frozenset(_KEYS.values())


class LdapQueries:
    """Sets the queries of a file. What ``auth-ldap`` does not have becomes a query that permits nothing."""

    def __init__(self, target: Target, backends: Backends, tally: Tally) -> None:
        self._target = target
        self._backends = backends
        self._tally = tally

    def convert(self, key: str, value: str) -> bool:
        """Convert a line of ``rabbitmq.conf``, whose value is a term; return whether it is a query."""
        if key not in _KEYS and key != _TAGS:
            return False
        try:
            term = read_term(value if value.rstrip().endswith(".") else f"{value}.")
        except NotATerm as error:
            shown = " ".join(shown_text(value).split())  # a comment has one line
            self._target.leave(f"{key} = {shown}".strip(), str(error), self._tally)
            if key != _TAGS:
                self._backends.query(_KEYS[key], "false")
            return True
        if key != _TAGS:
            self.query(_KEYS[key], term)
        elif isinstance(term, list):
            for each in term:
                self.tag_query(each)
        else:
            self._leave(_TAGS, term, "it is no list of tags")
        return True

    def query(self, key: str, term: Any) -> None:
        """Set a query."""
        try:
            text = query_text(term)
            self._tally.carried += 1
        except UnknownQuery as reason:
            self._leave("auth_ldap", (ErlangAtom(key), term), f"{reason}; until it has a query, {key} is false")
            text = "false"  # never wider than it was
        self._backends.query(key, text)

    def tag_query(self, term: Any) -> None:
        """Set the query of a tag, a pair."""
        try:
            tag, query = term
            self._backends.tag_query(str(tag), query_text(query))
            self._tally.carried += 1
        except (UnknownQuery, ValueError, TypeError) as reason:
            self._leave("auth_ldap.tag_queries", term, str(reason))

    def _leave(self, beginning: str, term: Any, reason: str) -> None:
        self._target.leave(f"{beginning} {shown_text(written(term))}", reason, self._tally)


def query_text(term: Any) -> str:
    """Return a query as ``auth-ldap`` reads it. :raises UnknownQuery: if it has no such query."""
    match term:
        case (ErlangAtom("constant"), ErlangAtom("true" | "false") as value):
            return value.name
        case (ErlangAtom("in_group"), str(group)) | (ErlangAtom("in_group"), str(group), "member" | "uniqueMember"):
            return f"in_group({_quoted(group)})"
        case (ErlangAtom("not"), inner):
            return f"not({query_text(inner)})"
        case (ErlangAtom("and" | "or") as word, list(queries)) if queries:
            return f"{word.name}({', '.join(map(query_text, queries))})"
        case (ErlangAtom("for"), list(cases)) if cases:
            return f"for({', '.join(map(_case, cases))})"
        case (ErlangAtom("equals"), one, other):
            return _equality(one, other)
        case (ErlangAtom("match"), one, other):
            return f"match({_quoted(_string(one))}, {_quoted(_string(other))})"
        case _:
            raise UnknownQuery(f"auth-ldap has no query {written(term)}")


def _case(term: Any) -> str:
    match term:
        case (ErlangAtom(key), ErlangAtom(value), query) | (ErlangAtom(key), str(value), query):
            return f"{key}={value}: {query_text(query)}"
        case _:
            raise UnknownQuery(f"auth-ldap has no case {written(term)}")


def _equality(one: Any, other: Any) -> str:
    match one, other:
        case ((ErlangAtom("attribute"), "${user_dn}", str(name)), value) | (
            value,
            (ErlangAtom("attribute"), "${user_dn}", str(name)),
        ):
            return f"attribute({_quoted(name)}, {_quoted(_string(value))})"
        case _:
            return f"equals({_quoted(_string(one))}, {_quoted(_string(other))})"


def _string(term: Any) -> str:
    match term:
        case str():
            return term
        case (ErlangAtom("string"), str(text)):
            return text
        case _:
            raise UnknownQuery(f"auth-ldap does not compare {written(term)}")


def _quoted(text: str) -> str:
    if '"' in text:
        raise UnknownQuery(f"a text in auth-ldap has no quotation mark: {text}")
    return f'"{text}"'
