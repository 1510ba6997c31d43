"""The clients, groups and roles of a dynamic security file that are in use, for operators; without passwords."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from gateway.api import CtlVerb, HttpRequest, HttpResource, NotFound, PanelColumn, UiPanel, VerbArgument
from gateway_auth.mosquitto.dynamic_security import DynamicSecurity, FileClient, Group, Role

_CLIENT_COLUMNS: Final = ("username", "clientid", "disabled", "roles", "groups")
_CLIENT_TITLES: Final = ("User", "Client identifier", "Disabled", "Roles", "Groups")
_ROLE: Final = VerbArgument("role", "The name of the role.")


class DynamicSecurityReport:
    """Answers requests about the rules; ``rules`` returns those in use, which change with their file."""

    def __init__(self, rules: Callable[[], DynamicSecurity]) -> None:
        self._rules = rules

    def clients(self, request: HttpRequest) -> Iterator[dict[str, Any]]:
        """Yield the clients, with the names of their roles and groups, the first that decides first."""
        rules = self._rules()
        for client in rules.clients:
            yield _client_row(client, [each.groupname for each in rules.memberships(client)])

    def groups(self, request: HttpRequest) -> Iterator[dict[str, Any] | None]:
        """Yield the groups, with the names of their roles and members."""
        rules = self._rules()
        members: dict[str, list[str]] = {}
        for client in rules.clients:
            for membership in rules.memberships(client):
                members.setdefault(membership.groupname, []).append(client.username)
            yield None  # ends a step
        for group in rules.groups:
            yield _group_row(group, members.get(group.groupname, []), rules.anonymous_group)

    def roles(self, request: HttpRequest) -> Iterator[dict[str, Any]]:
        """Yield the roles, with the number of their rules."""
        for role in self._rules().roles:
            yield {"rolename": role.rolename, "acls": len(role.acls)}

    def role(self, request: HttpRequest) -> Iterator[dict[str, Any]]:
        """Yield the rules of a role, the first that decides first. :raises NotFound: if there is no such role."""
        name = request.names["role"]
        found = next((role for role in self._rules().roles if role.rolename == name), None)
        if found is None:
            raise NotFound(f"role '{name[:100]}' is not in the dynamic security file")
        return _rule_rows(found)

    def access(self, request: HttpRequest) -> list[dict[str, Any]]:
        """Return the access where no rule decides, by kind."""
        found = self._rules().default_access.model_dump(by_alias=True)
        return [{"acltype": kind, "allow": allow} for kind, allow in found.items()]


def _client_row(client: FileClient, groups: Sequence[str]) -> dict[str, Any]:
    return {
        "username": client.username,
        "clientid": client.clientid,
        "disabled": client.disabled,
        "has_password": bool(client.password),
        "roles": [each.rolename for each in sorted(client.roles, key=lambda each: -each.priority)],
        "groups": groups,
    }


def _group_row(group: Group, members: Sequence[str], anonymous_group: str) -> dict[str, Any]:
    return {
        "groupname": group.groupname,
        "roles": [each.rolename for each in sorted(group.roles, key=lambda each: -each.priority)],
        "clients": members,
        "anonymous": group.groupname == anonymous_group,
    }


def _rule_rows(role: Role) -> Iterator[dict[str, Any]]:
    for rule in sorted(role.acls, key=lambda each: -each.priority):
        yield {"acltype": rule.acltype, "topic": rule.topic, "allow": rule.allow, "priority": rule.priority}


def resources(rules: Callable[[], DynamicSecurity]) -> list[HttpResource]:
    """Return the resources, which administrators may read."""
    report = DynamicSecurityReport(rules)
    offered: dict[str, tuple[Callable[[HttpRequest], object], str]] = {
        "clients": (report.clients, "The clients of the dynamic security file."),
        "groups": (report.groups, "Its groups."),
        "roles": (report.roles, "Its roles."),
        "roles/{role}": (report.role, "The rules of a role."),
        "default-access": (report.access, "The access where no rule decides."),
    }
    return [
        HttpResource(path, answer, tag="administrator", description=description)
        for path, (answer, description) in offered.items()
    ]


def verbs() -> list[CtlVerb]:
    """Return the verbs that call the resources."""
    return [
        CtlVerb("clients", "clients", "List the clients of the dynamic security file.", columns=_CLIENT_COLUMNS),
        CtlVerb("groups", "groups", "List its groups with their roles and members."),
        CtlVerb("roles", "roles", "List its roles."),
        CtlVerb("role", "roles/{role}", "List the rules of a role.", arguments=[_ROLE]),
        CtlVerb("default_access", "default-access", "List the access where no rule decides."),
    ]


def panels() -> list[UiPanel]:
    """Return the tables of the web UI."""
    clients = [PanelColumn(name, title) for name, title in zip(_CLIENT_COLUMNS, _CLIENT_TITLES, strict=True)]
    groups = [PanelColumn("groupname", "Group"), PanelColumn("roles", "Roles"), PanelColumn("clients", "Clients")]
    return [
        UiPanel("Dynamic security: clients", "clients", page="admin", columns=clients),
        UiPanel("Dynamic security: groups", "groups", page="admin", columns=groups),
    ]
