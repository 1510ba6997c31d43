"""The states of what a request changes, before and after it, for the audit record.

Each function takes the call and the names in the path, and returns the state, or ``None`` if the subject does not
exist. Permissions are not checked: the state is kept only if the request succeeds.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from gateway.kernel.queueing.queue_like import QueueLike
from gateway.management.http.call import Call
from gateway.management.http.routes import Fields
from gateway.management.resources.virtual_hosts.parameters import VHOST_LIMITS
from gateway.management.views.policies import rule_view

Snapshot: TypeAlias = Callable[..., Fields | None]

_DEFAULT_EXCHANGE: Final = "amq.default"


def user(call: Call, name: str) -> Fields | None:
    """Return a user with its password hash, which the record replaces."""
    record = call.broker.directory.user(name)
    if record is None:
        return None
    return {"tags": list(record.tags), "password_hash": record.password_hash, "limits": dict(record.limits)}


def user_limits(call: Call, name: str, **names: str) -> Fields | None:
    """Return the limits of a user."""
    record = call.broker.directory.user(name)
    return None if record is None else dict(record.limits)


def permission(call: Call, vhost: str, user: str) -> Fields | None:
    """Return the patterns of a user in a virtual host."""
    record = call.broker.directory.permission(vhost, user)
    if record is None:
        return None
    return {"configure": record.configure, "write": record.write, "read": record.read}


def topic_permissions(call: Call, vhost: str, user: str, **names: str) -> Fields | None:
    """Return the topic permissions of a user in a virtual host, by exchange."""
    records = call.broker.directory.topic_permissions_of(vhost, user)
    return {each.exchange: {"write": each.write, "read": each.read} for each in records} or None


def vhost(call: Call, name: str, **names: str) -> Fields | None:
    """Return the properties of a virtual host."""
    found = call.broker.vhost_by_name.get(name)
    if found is None:
        return None
    record = found.record
    return {
        "description": record.description,
        "tags": list(record.tags),
        "default_queue_type": record.default_queue_type,
        "tracing": record.tracing,
        "trace_table": record.trace_table,
        "protected_from_deletion": record.is_protected,
        "plugins": sorted(record.plugins),
    }


def vhost_limits(call: Call, name: str, **names: str) -> Fields | None:
    """Return the limits of a virtual host."""
    found = call.broker.vhost_by_name.get(name)
    return None if found is None else dict(found.record.limits)


def exchange(call: Call, vhost: str, name: str) -> Fields | None:
    """Return the declaration of an exchange."""
    found = call.broker.vhost_by_name.get(vhost)
    declared = None if found is None else found.exchange_by_name.get("" if name == _DEFAULT_EXCHANGE else name)
    if declared is None:
        return None
    return {
        "type": declared.type_name,
        "durable": declared.is_durable,
        "auto_delete": declared.is_auto_delete,
        "internal": declared.is_internal,
        "arguments": dict(declared.arguments),
    }


def queue(call: Call, vhost: str, name: str, **names: str) -> Fields | None:
    """Return the declaration of a queue."""
    declared = _queue(call, vhost, name)
    if declared is None:
        return None
    return {
        "durable": declared.is_durable,
        "auto_delete": declared.is_auto_delete,
        "exclusive": declared.owner is not None,
        "arguments": dict(declared.arguments),
    }


def messages(call: Call, vhost: str, name: str, **names: str) -> Fields | None:
    """Return the number of messages in a queue."""
    found = _queue(call, vhost, name)
    if found is None:
        return None
    return {"messages_ready": len(found), "messages_unacknowledged": found.unsettled, "delayed": found.delayed_count}


def policy(call: Call, vhost: str, name: str) -> Fields | None:
    """Return the rule of a policy."""
    record = call.broker.policies.get((vhost, name, False))
    return None if record is None else rule_view(record)


def operator_policy(call: Call, vhost: str, name: str) -> Fields | None:
    """Return the rule of an operator policy."""
    record = call.broker.policies.get((vhost, name, True))
    return None if record is None else rule_view(record)


def parameter(call: Call, component: str, vhost: str, name: str) -> Fields | None:
    """Return the value of a parameter."""
    if component == VHOST_LIMITS:
        return vhost_limits(call, vhost)
    record = call.broker.parameters.get((vhost, component, name))
    return None if record is None else {"value": record.value}


def shovel(call: Call, vhost: str, name: str) -> Fields | None:
    """Return the parameter of a shovel."""
    return parameter(call, "shovel", vhost, name)


def global_parameter(call: Call, name: str) -> Fields | None:
    """Return the value of a global parameter."""
    record = call.broker.parameters.get(("", "", name))
    return None if record is None else {"value": record.value}


def cluster_name(call: Call) -> Fields | None:
    """Return the name of the cluster."""
    return global_parameter(call, "cluster_name")


def plugin(call: Call, vhost: str, name: str) -> Fields | None:
    """Return a plugin's version and settings in a virtual host, without its secrets; ``None`` if it is not enabled."""
    control = call.context.plugins
    if control is None or vhost not in call.broker.vhost_by_name:
        return None
    row = next((row for row in control.in_vhost(vhost) if row["name"] == name), None)
    if row is None or row.get("state") == "disabled":
        return None
    return {key: row[key] for key in ("state", "version", "settings") if key in row}


def setting(call: Call, key: str) -> Fields | None:
    """Return the value of a setting in effect; secret ones are hidden."""
    row = next((row for row in call.control.settings() if row["key"] == key), None)
    return None if row is None else {"value": row["value"], "origin": row["origin"]}


def _queue(call: Call, vhost: str, name: str) -> QueueLike | None:
    found = call.broker.vhost_by_name.get(vhost)
    return None if found is None else found.queue_by_name.get(name)
