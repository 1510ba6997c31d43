"""The JSON file of Mosquitto's dynamic security plugin: clients, groups, roles and default access."""

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gateway.api import ConfigurationError
from gateway_auth.mosquitto.password_file import PasswordHash, pbkdf2_hash
from gateway_auth.mosquitto.rules import MqttClient, replaced
from gateway_auth.mosquitto.topics import Levels, covers, levels_of, overlaps

AclType: TypeAlias = Literal[
    "publishClientSend",
    "publishClientReceive",
    "subscribeLiteral",
    "subscribePattern",
    "unsubscribeLiteral",
    "unsubscribePattern",
]


class _Fields(BaseModel):
    """A part of the file; keys without effect on access, such as descriptions, are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class RoleRule(_Fields):
    """One rule of a role."""

    acltype: AclType
    topic: str
    allow: bool
    priority: int = 0


class Role(_Fields):
    """A role and its rules."""

    rolename: str
    acls: list[RoleRule] = []


class RoleOf(_Fields):
    """The role of a client or a group."""

    rolename: str
    priority: int = -1


class GroupOf(_Fields):
    """The group of a client."""

    groupname: str
    priority: int = -1


class Member(_Fields):
    """A client of a group; the priority is that of the group for this client."""

    username: str
    priority: int = -1


class Group(_Fields):
    """A group, its roles and its clients. Mosquitto writes the membership here only, not with the client."""

    groupname: str
    roles: list[RoleOf] = []
    clients: list[Member] = []


class FileClient(_Fields):
    """A client with its hash, roles and groups. With ``clientid`` only that identifier may log in."""

    username: str
    clientid: str = ""
    password: str = ""
    salt: str = ""
    iterations: int = 0
    disabled: bool = False
    roles: list[RoleOf] = []
    groups: list[GroupOf] = []

    def password_hash(self) -> PasswordHash | None:
        """Return the hash; ``None`` for a client without one, which cannot log in."""
        return pbkdf2_hash(self.iterations, self.salt, self.password) if self.password else None


class DefaultAccess(_Fields):
    """The access where no rule decides."""

    publish_client_send: bool = Field(default=False, alias="publishClientSend")
    publish_client_receive: bool = Field(default=True, alias="publishClientReceive")
    subscribe: bool = False
    unsubscribe: bool = True


class DynamicSecurity(_Fields):
    """The whole file. The rules of a client are tried by priority: its own roles first, then those of its groups."""

    clients: list[FileClient] = []
    groups: list[Group] = []
    roles: list[Role] = []
    anonymous_group: str = Field(default="", alias="anonymousGroup")
    default_access: DefaultAccess = Field(default=DefaultAccess(), alias="defaultACLAccess")

    def client(self, name: str, client_id: str) -> FileClient | None:
        """Return a client that may log in with this identifier."""
        found = self._client_by_name.get(name)
        if found is None or found.disabled or found.clientid not in ("", client_id):
            return None
        return found

    def admits(self, client: MqttClient) -> bool:
        """Whether a client that has logged in may stay: an anonymous one, or one that could log in now."""
        return not client.user or self.client(client.user, client.client_id) is not None

    def memberships(self, client: FileClient) -> list[GroupOf]:
        """Return the groups of a client, the first that decides first."""
        found = {each.groupname: each for each in client.groups}
        found |= {each.groupname: each for each in self._groups_by_user.get(client.username, ())}
        return sorted(found.values(), key=lambda each: -each.priority)

    @cached_property
    def _groups_by_user(self) -> Mapping[str, list[GroupOf]]:
        found: dict[str, list[GroupOf]] = {}
        for group in self.groups:
            for member in group.clients:
                membership = GroupOf(groupname=group.groupname, priority=member.priority)
                found.setdefault(member.username, []).append(membership)
        return found

    @cached_property
    def _client_by_name(self) -> Mapping[str, FileClient]:
        return {client.username: client for client in reversed(self.clients)}  # the first one of a name counts

    @cached_property
    def _group_by_name(self) -> Mapping[str, Group]:
        return {group.groupname: group for group in self.groups}

    @cached_property
    def _rules_by_role(self) -> Mapping[str, list[RoleRule]]:
        return {role.rolename: sorted(role.acls, key=lambda each: -each.priority) for role in self.roles}

    def may_control(self, client: MqttClient, topic: Levels) -> bool:
        """Whether a rule permits a client to publish to a topic; the default access does not suffice."""
        rules = self._rules(client, "publishClientSend")
        return next((rule.allow for rule, levels in rules if covers(levels, topic)), False)

    def may_publish(self, client: MqttClient, asked: Levels) -> bool:
        """Whether a client may publish to a topic."""
        for rule, topic in self._rules(client, "publishClientSend"):
            if covers(topic, asked):
                return rule.allow
        return self.default_access.publish_client_send

    def may_subscribe(self, client: MqttClient, asked: Levels) -> bool:
        """Whether a client may subscribe to a filter, and receive all that matches it."""
        return self._may_ask(client, asked) and self._may_receive(client, asked)

    def _may_ask(self, client: MqttClient, asked: Levels) -> bool:
        for rule, topic in self._rules(client, "subscribeLiteral", "subscribePattern"):
            if topic == asked or (rule.acltype == "subscribePattern" and covers(topic, asked)):
                return rule.allow
        return self.default_access.subscribe

    def _may_receive(self, client: MqttClient, asked: Levels) -> bool:
        """Whether all topics of a filter may be received; a refusal of some of them refuses the filter."""
        for rule, topic in self._rules(client, "publishClientReceive"):
            if rule.allow and covers(topic, asked):
                return True
            if not rule.allow and overlaps(topic, asked):
                return False
        return self.default_access.publish_client_receive

    def _rules(self, client: MqttClient, *types: AclType) -> Iterator[tuple[RoleRule, Levels]]:
        for held in self._roles_of(client):
            for rule in self._rules_by_role.get(held.rolename, ()):
                topic = replaced(levels_of(rule.topic), client)
                if rule.acltype in types and topic is not None:
                    yield rule, topic

    def _roles_of(self, client: MqttClient) -> Iterator[RoleOf]:
        found = self._client_by_name.get(client.user) if client.user else None
        anonymous = [GroupOf(groupname=self.anonymous_group)] if not client.user and self.anonymous_group else []
        roles, memberships = (found.roles, self.memberships(found)) if found is not None else ([], anonymous)
        yield from sorted(roles, key=lambda each: -each.priority)
        for membership in memberships:
            group = self._group_by_name.get(membership.groupname)
            if group is not None:
                yield from sorted(group.roles, key=lambda each: -each.priority)


def parse_dynamic_security(text: str) -> DynamicSecurity:
    """Parse the file. :raises ConfigurationError: with the place, if it is invalid."""
    try:
        found = DynamicSecurity.model_validate(json.loads(text))
        for client in found.clients:
            client.password_hash()
        for role in found.roles:
            for rule in role.acls:
                levels_of(rule.topic)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigurationError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except RecursionError:
        raise ConfigurationError("not valid JSON: it is nested too deeply") from None
    except ValueError as error:
        raise ConfigurationError(f"not valid JSON, or an invalid hash: {error}") from None
    return found
