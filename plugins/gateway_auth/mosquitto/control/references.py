"""Lists of roles, groups and rules in commands, checked against the document."""

from gateway_auth.mosquitto.control.document import Document, Entry, has_role
from gateway_auth.mosquitto.control.errors import CommandError
from gateway_auth.mosquitto.control.fields import Fields, list_in, name_in, priority_in, text_in


def roles_in(document: Document, fields: Fields) -> list[Entry] | None:
    """Return the list ``roles``; ``None`` if it is not given. :raises CommandError: if a role does not exist."""
    given = list_in(fields, "roles")
    if given is None:
        return None
    found: dict[str, Entry] = {}
    for each in given:
        rolename = name_in(each, "rolename")
        document.role(rolename)
        found.setdefault(rolename, {"rolename": rolename, **priority_in(each)})
    return list(found.values())


def groups_in(document: Document, fields: Fields) -> dict[str, Entry] | None:
    """Return the priorities by name in the list ``groups``. :raises CommandError: if a group does not exist."""
    given = list_in(fields, "groups")
    if given is None:
        return None
    found: dict[str, Entry] = {}
    for each in given:
        groupname = name_in(each, "groupname")
        document.group(groupname)
        found.setdefault(groupname, priority_in(each))
    return found


def members_in(document: Document, fields: Fields) -> list[Entry] | None:
    """Return the list ``clients`` of a group. :raises CommandError: if a client does not exist."""
    given = list_in(fields, "clients")
    if given is None:
        return None
    found: dict[str, Entry] = {}
    for each in given:
        username = name_in(each, "username")
        document.client(username)
        found.setdefault(username, {"username": username, **priority_in(each)})
    return list(found.values())


def add_role(document: Document, holder: Entry, fields: Fields, kind: str) -> None:
    """Give a client or a group the role that a command names. :raises CommandError: if it has the role."""
    rolename = name_in(fields, "rolename")
    document.role(rolename)
    if has_role(holder, rolename):
        raise CommandError(f"{kind} is already in this role")
    holder.setdefault("roles", []).append({"rolename": rolename, **priority_in(fields)})


def remove_role(document: Document, holder: Entry, fields: Fields) -> None:
    """Take the role that a command names from a client or a group, if it has the role."""
    rolename = name_in(fields, "rolename")
    document.role(rolename)
    holder["roles"] = [each for each in holder.get("roles", []) if each["rolename"] != rolename]


def describe(entry: Entry, fields: Fields) -> None:
    """Set the texts that a command gives for operators."""
    texts = {key: text_in(fields, key) for key in ("textname", "textdescription")}
    entry.update({key: text for key, text in texts.items() if text is not None})


def described(entry: Entry) -> Entry:
    """Return the texts for operators. ``mosquitto_ctrl dynsec init`` writes ``textName``."""
    found = {key.lower(): value for key, value in entry.items()}
    return {key: found[key] for key in ("textname", "textdescription") if key in found}
