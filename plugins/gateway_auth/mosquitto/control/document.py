"""The content of a dynamic security file while commands change it."""

import json
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

from gateway.api import ConfigurationError
from gateway_auth.mosquitto.control.errors import CommandError

Entry: TypeAlias = dict[str, Any]
"""A client, a group or a role as the file has it. Keys without a meaning here are kept."""

_ANONYMOUS: Final = ""


class Document:
    """Clients, groups and roles by name, in the order of the file.

    ``is_changed`` is set by commands that changed it. ``users`` are those whose clients must connect again, because
    what they may do has changed; the empty name stands for anonymous clients.
    """

    def __init__(self, content: Entry) -> None:
        """:raises ConfigurationError: if a list has something else than named objects."""
        self._content = content
        self.clients = _by_name(content, "clients", "username")
        self.groups = _by_name(content, "groups", "groupname")
        self.roles = _by_name(content, "roles", "rolename")
        self.is_changed = False
        self.users: set[str] = set()
        for client in self.clients.values():
            self._move_memberships(client)

    @property
    def anonymous_group(self) -> str:
        """The name of the group of anonymous clients; empty without one."""
        return str(self._content.get("anonymousGroup", ""))

    @anonymous_group.setter
    def anonymous_group(self, name: str) -> None:
        self._content["anonymousGroup"] = name

    @property
    def default_access(self) -> Entry:
        """The access where no rule decides, as far as the file has it."""
        found: Entry = self._content.setdefault("defaultACLAccess", {})
        return found

    def client(self, name: str) -> Entry:
        """Return a client. :raises CommandError: if there is none."""
        return _existing(self.clients, name, "Client")

    def group(self, name: str) -> Entry:
        """Return a group. :raises CommandError: if there is none."""
        return _existing(self.groups, name, "Group")

    def role(self, name: str) -> Entry:
        """Return a role. :raises CommandError: if there is none."""
        return _existing(self.roles, name, "Role")

    def groups_of(self, username: str) -> list[Entry]:
        """Return the groups of a client with its priority in each, the first that decides first."""
        found = [
            {"groupname": name, **{key: member[key] for key in ("priority",) if key in member}}
            for name, group in self.groups.items()
            for member in members_of(group)
            if member["username"] == username
        ]
        return in_order(found)

    def changed(self, users: Iterable[str] = ()) -> None:
        """Mark the document as changed; these users must connect again."""
        self.is_changed = True
        self.users.update(users)

    def users_of_group(self, name: str) -> list[str]:
        """Return the members of a group, with the empty name if it is the group of anonymous clients."""
        anonymous = [_ANONYMOUS] if name == self.anonymous_group else []
        return [member["username"] for member in members_of(self.groups[name])] + anonymous

    def users_of_role(self, name: str) -> list[str]:
        """Return the users who have a role, by themselves or by a group."""
        found = [username for username, client in self.clients.items() if has_role(client, name)]
        for groupname, group in self.groups.items():
            if has_role(group, name):
                found += self.users_of_group(groupname)
        return found

    def text(self) -> str:
        """Return the content of the file."""
        self._content["clients"] = list(self.clients.values())
        self._content["groups"] = list(self.groups.values())
        self._content["roles"] = list(self.roles.values())
        return json.dumps(self._content, indent="\t") + "\n"

    def _move_memberships(self, client: Entry) -> None:
        """Move the groups of a client to the groups, where Mosquitto's files have them."""
        for membership in client.pop("groups", []):
            group = self.groups.get(membership["groupname"])
            if group is not None and not is_member(group, client["username"]):
                priority = {key: membership[key] for key in ("priority",) if key in membership}
                group.setdefault("clients", []).append({"username": client["username"], **priority})


def members_of(group: Entry) -> list[Entry]:
    """Return the clients of a group."""
    found: list[Entry] = group.get("clients", [])
    return found


def is_member(group: Entry, username: str) -> bool:
    """Whether a client is in a group."""
    return any(member["username"] == username for member in members_of(group))


def has_role(holder: Entry, rolename: str) -> bool:
    """Whether a client or a group has a role."""
    return any(each["rolename"] == rolename for each in holder.get("roles", ()))


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Return entries with a priority, the first that decides first."""
    return sorted(entries, key=_by_priority)


def _by_priority(entry: Entry) -> int:
    return -int(entry.get("priority", -1))


def _existing(entries: dict[str, Entry], name: str, kind: str) -> Entry:
    found = entries.get(name)
    if found is None:
        raise CommandError(f"{kind} not found")
    return found


def _by_name(content: Entry, key: str, name_key: str) -> dict[str, Entry]:
    entries = content.get(key, [])
    try:
        return {str(entry[name_key]): entry for entry in entries}
    except (TypeError, KeyError):
        raise ConfigurationError(f"{key} is not a list of objects with {name_key}") from None
