"""Commands about roles and their rules, and about the access where no rule decides."""

from typing import Any, Final, get_args

from gateway.api import ConfigurationError
from gateway_auth.mosquitto.control.document import Document, Entry
from gateway_auth.mosquitto.control.errors import CommandError
from gateway_auth.mosquitto.control.fields import Fields, list_in, name_in, number_in
from gateway_auth.mosquitto.control.listing import listed
from gateway_auth.mosquitto.control.references import describe, described, drop_role, known
from gateway_auth.mosquitto.dynamic_security import AclType, DefaultAccess
from gateway_auth.mosquitto.topics import levels_of

_TYPES: Final = get_args(AclType)


def create(document: Document, fields: Fields) -> None:
    """``createRole``."""
    rolename = name_in(fields, "rolename")
    if rolename in document.roles:
        raise CommandError("Role already exists")
    role: Entry = {"rolename": rolename, "acls": _rules_in(fields) or []}
    describe(role, fields)
    document.roles[rolename] = role
    document.changed()


def delete(document: Document, fields: Fields) -> None:
    """``deleteRole``; clients and groups lose it."""
    rolename = known(fields, "rolename", document.role)
    users = document.users_of_role(rolename)
    del document.roles[rolename]
    for holder in (*document.clients.values(), *document.groups.values()):
        drop_role(holder, rolename)
    document.changed(users)


def modify(document: Document, fields: Fields) -> None:
    """``modifyRole``: what is given replaces what the role has."""
    rolename = known(fields, "rolename", document.role)
    rules = _rules_in(fields)
    describe(document.roles[rolename], fields)
    if rules is not None:
        document.roles[rolename]["acls"] = rules
    document.changed(document.users_of_role(rolename) if rules is not None else ())


def add_rule(document: Document, fields: Fields) -> None:
    """``addRoleACL``."""
    rolename = known(fields, "rolename", document.role)
    rule = _rule(fields)
    rules = document.roles[rolename].setdefault("acls", [])
    if any(_is_same(rule, other) for other in rules):
        raise CommandError("ACL with this topic already exists")
    rules.append(rule)
    document.changed(document.users_of_role(rolename))


def remove_rule(document: Document, fields: Fields) -> None:
    """``removeRoleACL``."""
    rolename = known(fields, "rolename", document.role)
    removed = {"acltype": _type_in(fields), "topic": name_in(fields, "topic")}
    rules = document.roles[rolename].get("acls", [])
    kept = [rule for rule in rules if not _is_same(rule, removed)]
    if len(kept) == len(rules):
        raise CommandError("ACL not found")
    document.roles[rolename]["acls"] = kept
    document.changed(document.users_of_role(rolename))


def get(document: Document, fields: Fields) -> dict[str, Any]:
    """``getRole``."""
    return {"role": _view(document, known(fields, "rolename", document.role))}


def list_all(document: Document, fields: Fields) -> dict[str, Any]:
    """``listRoles``."""
    return listed(fields, "roles", document.roles, lambda rolename: _view(document, rolename))


def get_default_access(document: Document, fields: Fields) -> dict[str, Any]:
    """``getDefaultACLAccess``."""
    access = DefaultAccess.model_validate(document.default_access).model_dump(by_alias=True)
    return {"acls": [{"acltype": kind, "allow": allow} for kind, allow in access.items()]}


def set_default_access(document: Document, fields: Fields) -> None:
    """``setDefaultACLAccess``."""
    given = list_in(fields, "acls")
    if given is None:
        raise CommandError("Missing/invalid actions array")
    kinds, access = DefaultAccess().model_dump(by_alias=True), {}
    for each in given:
        kind = name_in(each, "acltype")
        if kind not in kinds:
            raise CommandError("Unknown acltype")
        access[kind] = _allow_in(each)
    document.default_access.update(access)
    document.changed()


def _allow_in(fields: Fields) -> bool:
    """Return whether access is allowed. ``mosquitto_ctrl`` 2.0 sends ``"access": "allow"``, which Mosquitto ignores."""
    allow = fields.get("allow", {"allow": True, "deny": False}.get(str(fields.get("access"))))
    if not isinstance(allow, bool):
        raise CommandError("Invalid/missing allow")
    return allow


def _rules_in(fields: Fields) -> list[Entry] | None:
    given = list_in(fields, "acls")
    if given is None:
        return None
    found: dict[tuple[str, str], Entry] = {}
    for each in given:
        rule = _rule(each)
        found.setdefault((rule["acltype"], rule["topic"]), rule)
    return list(found.values())


def _rule(fields: Fields) -> Entry:
    kind, topic = _type_in(fields), name_in(fields, "topic")
    try:
        levels_of(topic)
    except ConfigurationError:
        raise CommandError("Invalid ACL topic") from None
    priority = number_in(fields, "priority", 0)
    return {"acltype": kind, "topic": topic, "priority": priority, "allow": fields.get("allow") is True}


def _type_in(fields: Fields) -> str:
    kind = name_in(fields, "acltype")
    if kind not in _TYPES:
        raise CommandError("Unknown acltype")
    return kind


def _is_same(rule: Entry, other: Entry) -> bool:
    return (rule["acltype"], rule["topic"]) == (other["acltype"], other["topic"])


def _view(document: Document, rolename: str) -> Entry:
    role = document.roles[rolename]
    rules = sorted(role.get("acls", []), key=_place_of)
    return {"rolename": rolename, **described(role), "acls": [{"priority": 0, **rule} for rule in rules]}


def _place_of(rule: Entry) -> tuple[int, int]:
    return _TYPES.index(rule["acltype"]), -int(rule.get("priority", 0))
