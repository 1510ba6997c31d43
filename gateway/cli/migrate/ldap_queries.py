"""Conversion of the queries of RabbitMQ's LDAP plugin, Erlang terms, to those of ``auth-ldap``."""

from typing import Any, Final

from gateway.cli.migrate.erlang_terms import ErlangAtom, written

#: The attributes of groups in which ``auth-ldap`` looks.
_MEMBERS: Final = ("member", "uniqueMember")


class UnknownQuery(ValueError):
    """A query that ``auth-ldap`` does not have; the text is the reason."""


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
