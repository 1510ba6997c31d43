"""Lists of roles, groups and rules in commands, checked against the document."""

from collections.abc import Callable
from typing import TypeAlias

from gateway_auth.mosquitto.control.document import Document, Entry, has_role
from gateway_auth.mosquitto.control.errors import CommandError
from gateway_auth.mosquitto.control.fields import Fields, list_in, name_in, priority_in, text_in

Find: TypeAlias = Callable[[str], Entry]
"""Returns the client, the group or the role of a name, or raises ``CommandError``."""


def known(fields: Fields, key: str, find: Find) -> str:
    """Return the name that a command gives as ``key``. :raises CommandError: if ``find`` finds nothing of this name."""
    name = name_in(fields, key)
    find(name)
    return name


def roles_in(document: Document, fields: Fields) -> list[Entry] | None:
    """Return the list ``roles``; ``None`` if it is not given. :raises CommandError: if a role does not exist."""
    return _entries(_priorities(fields, "roles", "rolename", document.role), "rolename")


def groups_in(document: Document, fields: Fields) -> dict[str, Entry] | None:
    """Return the priorities by name in the list ``groups``. :raises CommandError: if a group does not exist."""
    return _priorities(fields, "groups", "groupname", document.group)


def members_in(document: Document, fields: Fields) -> list[Entry] | None:
    """Return the list ``clients`` of a group. :raises CommandError: if a client does not exist."""
    return _entries(_priorities(fields, "clients", "username", document.client), "username")


def _priorities(fields: Fields, list_key: str, key: str, find: Find) -> dict[str, Entry] | None:
    """Return the priorities in a list by name, the first of each name; ``None`` if the list is not given."""
    given = list_in(fields, list_key)
    if given is None:
        return None
    found: dict[str, Entry] = {}
    for each in given:
        found.setdefault(known(each, key, find), dict(priority_in(each)))
    return found


def _entries(priorities: dict[str, Entry] | None, key: str) -> list[Entry] | None:
    """Return them as the file has them."""
    return None if priorities is None else [{key: name, **priority} for name, priority in priorities.items()]


def add_role(document: Document, holder: Entry, fields: Fields, kind: str) -> None:
    """Give a client or a group the role that a command names. :raises CommandError: if it has the role."""
    rolename = known(fields, "rolename", document.role)
    if has_role(holder, rolename):
        raise CommandError(f"{kind} is already in this role")
    holder.setdefault("roles", []).append({"rolename": rolename, **priority_in(fields)})


def remove_role(document: Document, holder: Entry, fields: Fields) -> None:
    """Take the role that a command names from a client or a group, if it has the role."""
    drop_role(holder, known(fields, "rolename", document.role))


def drop_role(holder: Entry, rolename: str) -> None:
    """Take a role from a client or a group, if it has the role."""
    holder["roles"] = [each for each in holder.get("roles", []) if each["rolename"] != rolename]


def describe(entry: Entry, fields: Fields) -> None:
    """Set the texts that a command gives for operators."""
    texts = {key: text_in(fields, key) for key in ("textname", "textdescription")}
    entry.update({key: text for key, text in texts.items() if text is not None})


def described(entry: Entry) -> Entry:
    """Return the texts for operators. ``mosquitto_ctrl dynsec init`` writes ``textName``."""
    found = {key.lower(): value for key, value in entry.items()}
    return {key: found[key] for key in ("textname", "textdescription") if key in found}
