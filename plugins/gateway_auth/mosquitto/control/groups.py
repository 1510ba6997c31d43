"""Commands about groups."""

from typing import Any

from gateway_auth.mosquitto.control.document import Document, Entry, in_order, is_member, members_of
from gateway_auth.mosquitto.control.errors import CommandError
from gateway_auth.mosquitto.control.fields import Fields, name_in, priority_in
from gateway_auth.mosquitto.control.listing import listed
from gateway_auth.mosquitto.control.references import (
    add_role,
    describe,
    described,
    known,
    members_in,
    remove_role,
    roles_in,
)


def create(document: Document, fields: Fields) -> None:
    """``createGroup``."""
    groupname = name_in(fields, "groupname")
    if groupname in document.groups:
        raise CommandError("Group already exists")
    group: Entry = {"groupname": groupname, "roles": roles_in(document, fields) or []}
    describe(group, fields)
    group["clients"] = []
    document.groups[groupname] = group
    document.changed()


def delete(document: Document, fields: Fields) -> None:
    """``deleteGroup``; anonymous clients then have no group, if it was theirs."""
    groupname = known(fields, "groupname", document.group)
    users = document.users_of_group(groupname)
    del document.groups[groupname]
    if document.anonymous_group == groupname:
        document.anonymous_group = ""
    document.changed(users)


def modify(document: Document, fields: Fields) -> None:
    """``modifyGroup``: what is given replaces what the group has."""
    groupname = known(fields, "groupname", document.group)
    group, former = document.groups[groupname], document.users_of_group(groupname)
    roles, members = roles_in(document, fields), members_in(document, fields)
    describe(group, fields)
    if roles is not None:
        group["roles"] = roles
    if members is not None:
        group["clients"] = members
    document.changed([*former, *document.users_of_group(groupname)])


def add_client(document: Document, fields: Fields) -> None:
    """``addGroupClient``. The priority is that of the group for this client."""
    username, group = name_in(fields, "username"), document.groups[known(fields, "groupname", document.group)]
    document.client(username)
    if is_member(group, username):
        raise CommandError("Client is already in this group")
    group.setdefault("clients", []).append({"username": username, **priority_in(fields)})
    document.changed([username])


def remove_client(document: Document, fields: Fields) -> None:
    """``removeGroupClient``."""
    username, group = name_in(fields, "username"), document.groups[known(fields, "groupname", document.group)]
    document.client(username)
    group["clients"] = [member for member in members_of(group) if member["username"] != username]
    document.changed([username])


def give_role(document: Document, fields: Fields) -> None:
    """``addGroupRole``."""
    groupname = known(fields, "groupname", document.group)
    add_role(document, document.groups[groupname], fields, "Group")
    document.changed(document.users_of_group(groupname))


def take_role(document: Document, fields: Fields) -> None:
    """``removeGroupRole``."""
    groupname = known(fields, "groupname", document.group)
    remove_role(document, document.groups[groupname], fields)
    document.changed(document.users_of_group(groupname))


def get(document: Document, fields: Fields) -> dict[str, Any]:
    """``getGroup``."""
    return {"group": _view(document, known(fields, "groupname", document.group))}


def list_all(document: Document, fields: Fields) -> dict[str, Any]:
    """``listGroups``."""
    return listed(fields, "groups", document.groups, lambda groupname: _view(document, groupname))


def get_anonymous(document: Document, fields: Fields) -> dict[str, Any]:
    """``getAnonymousGroup``."""
    return {"group": {"groupname": document.anonymous_group}}


def set_anonymous(document: Document, fields: Fields) -> None:
    """``setAnonymousGroup``."""
    document.anonymous_group = known(fields, "groupname", document.group)
    document.changed([""])


def _view(document: Document, groupname: str) -> Entry:
    group = document.groups[groupname]
    clients = [{"username": member["username"]} for member in members_of(group)]
    view = {"groupname": groupname, **described(group)}
    return {**view, "clients": clients, "roles": in_order(group.get("roles", []))}
