"""The JSON file of Mosquitto's dynamic security plugin: clients, groups, roles and default access."""

import json
from collections.abc import Iterator
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
    priority: int = 0


class GroupOf(_Fields):
    """The group of a client."""

    groupname: str
    priority: int = 0


class Group(_Fields):
    """A group and its roles."""

    groupname: str
    roles: list[RoleOf] = []


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
        found = next((each for each in self.clients if each.username == name), None)
        if found is None or found.disabled or found.clientid not in ("", client_id):
            return None
        return found

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
        acls = {role.rolename: role.acls for role in self.roles}
        for held in self._roles_of(client):
            for rule in sorted(acls.get(held.rolename, []), key=lambda each: -each.priority):
                topic = replaced(levels_of(rule.topic), client)
                if rule.acltype in types and topic is not None:
                    yield rule, topic

    def _roles_of(self, client: MqttClient) -> Iterator[RoleOf]:
        found = next((each for each in self.clients if client.user and each.username == client.user), None)
        anonymous = [GroupOf(groupname=self.anonymous_group)] if not client.user and self.anonymous_group else []
        roles, memberships = (found.roles, found.groups) if found is not None else ([], anonymous)
        yield from sorted(roles, key=lambda each: -each.priority)
        groups = {group.groupname: group for group in self.groups}
        for membership in sorted(memberships, key=lambda each: -each.priority):
            group = groups.get(membership.groupname)
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
