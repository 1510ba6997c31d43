"""Passwords in the URIs of parameters: masked in answers, and kept when a masked URI is set again.

Definitions, listings and the audit record show ``amqp://user:***@host`` instead of the password. A parameter that is
written with such a URI keeps the stored password, if scheme, user, host and path are the stored ones; tools change the
options. See docs/adr/0024-secrets-in-exports.md.
"""

from typing import Final

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Value

MASK: Final = "***"

_SCHEME_END: Final = "://"
_MASKED_LOGIN: Final = f":{MASK}@"


class UnknownSecret(PreconditionFailed):
    """A URI has ``***`` instead of its password, and no stored one is known for it."""


def shown(value: Value) -> Value:
    """Return a JSON value with the passwords of all URIs in it replaced."""
    if isinstance(value, str):
        return shown_text(value) if "@" in value else value
    if isinstance(value, list | tuple):
        return [shown(item) for item in value]
    if isinstance(value, dict):
        return {name: shown(item) for name, item in value.items()}
    return value


def shown_text(text: str) -> str:
    """Return a text with the password of each URI in it replaced, in time linear in its length."""
    first, *rest = text.split(_SCHEME_END)
    return _SCHEME_END.join([first, *map(_without_password, rest)])


def restored(value: Value, stored: Value, name: str) -> Value:
    """Return a value that was shown with the passwords of the stored one; others stay as they are.

    :param name: the parameter and the key in it, for the error.
    :raises UnknownSecret: if the stored value has no such URI.
    """
    if isinstance(value, str):
        return _restored_text(value, stored, name) if _MASKED_LOGIN in value else value
    if isinstance(value, list | tuple):
        return [restored(item, stored, name) for item in value]  # the order of a list of URIs may change
    if isinstance(value, dict):
        known = stored if isinstance(stored, dict) else {}
        return {key: restored(item, known.get(key), f"{name}, {key}") for key, item in value.items()}
    return value


def has_mask(value: Value) -> bool:
    """Return whether a value has a URI with a replaced password."""
    if isinstance(value, str):
        return _MASKED_LOGIN in value and value == shown_text(value)
    if isinstance(value, list | tuple):
        return any(map(has_mask, value))
    return isinstance(value, dict) and any(map(has_mask, value.values()))


def _restored_text(text: str, stored: Value, name: str) -> str:
    known = [uri for uri in (stored if isinstance(stored, list | tuple) else (stored,)) if isinstance(uri, str)]
    for uri in known:
        if shown_text(uri) == text:
            return uri
    base, mark, options = text.partition("?")
    for uri in known:
        if shown_text(uri).partition("?")[0] == base:
            return uri.partition("?")[0] + mark + options
    if not has_mask(text):
        return text
    reason = f'the URI "{text}" has {MASK} instead of its password, and no password is stored for this URI'
    raise UnknownSecret(f"{name}: {reason}: write the password, or import an export with ?secrets=true")


def _without_password(rest: str) -> str:
    """Return what follows ``://``, up to the next URI, without the password."""
    words = rest.split(maxsplit=1)
    uri = words[0] if words and not rest[:1].isspace() else ""
    authority = uri.partition("/")[0]
    login, at, _ = authority.rpartition("@")
    user, colon, password = (login if at else authority).partition(":")
    if not colon or (not at and (password.isdigit() or "@" not in uri)):
        return rest
    if not at:  # a slash in the password
        login = uri.rpartition("@")[0]
    return f"{user}:{MASK}{rest[len(login) :]}"
