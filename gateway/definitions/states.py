"""The state of each entity, as definitions describe it and as the broker has it, in one form that can be compared."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from gateway.definitions import model
from gateway.definitions.records import Records
from gateway.kernel.broker.broker import Broker
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.names import RESERVED_PREFIX
from gateway.kernel.routing.exchange import Exchange
from gateway.kernel.vhosts.declarations import QueueDeclaration
from gateway.kernel.vhosts.virtual_host import VirtualHost

State: TypeAlias = dict[str, Any]

#: The categories, in the order in which they are created; they are deleted in the reverse order.
CATEGORIES: Final = (
    "users",
    "vhosts",
    "permissions",
    "topic_permissions",
    "exchanges",
    "global_parameters",
    "policies",
    "parameters",
    "queues",
    "bindings",
)

#: Component names of what RabbitMQ exports among the parameters.
OPERATOR_POLICY: Final = "operator_policy"
VHOST_LIMITS: Final = "vhost-limits"

#: The state of a user whose file has its password in clear text: it cannot be compared.
UNKNOWN_PASSWORD: Final = "(in clear text, not compared)"


class EntityKey(NamedTuple):
    """An entity: its category, its virtual host (empty for none), and the names that identify it."""

    category: str
    vhost: str
    names: tuple[str, ...]


def wanted_states(
    definitions: model.Definitions, broker: Broker, default_vhost: str
) -> Iterator[tuple[EntityKey, State]]:
    """Yield the entities of definitions; a state has only what the file says."""
    records = Records(definitions.version, broker.parameters)
    for user in definitions.users:
        record = records.user_without_password(user)
        secret = UNKNOWN_PASSWORD if user.password else record.password_hash
        yield (
            EntityKey("users", "", (user.name,)),
            {
                "tags": sorted(user.tags),
                "password_hash": secret,
                "limits": dict(user.limits),
            },
        )
    for vhost in definitions.vhosts:
        yield EntityKey("vhosts", "", (vhost.name,)), _wanted_vhost(vhost)
        if vhost.limits:
            yield EntityKey("parameters", vhost.name, (VHOST_LIMITS, "limits")), {"value": dict(vhost.limits)}
    for permission in definitions.permissions:
        key = EntityKey("permissions", permission.vhost or default_vhost, (permission.user,))
        yield key, {"configure": permission.configure, "write": permission.write, "read": permission.read}
    for topic in definitions.topic_permissions:
        key = EntityKey("topic_permissions", topic.vhost or default_vhost, (topic.user, topic.exchange))
        yield key, {"write": topic.write, "read": topic.read}
    for parameter in definitions.global_parameters:
        yield EntityKey("global_parameters", "", (parameter.name,)), {"value": parameter.value}
    for policy in definitions.policies:
        record_of = records.policy(policy.vhost or default_vhost, policy)
        yield EntityKey("policies", record_of.vhost, (policy.name,)), _rule(record_of)
    for each in definitions.parameters:
        yield _wanted_parameter(records, each, each.vhost or default_vhost)
    yield from _wanted_topology(definitions, broker, default_vhost)


def current_states(broker: Broker, vhost: str | None) -> Iterator[tuple[EntityKey, State]]:
    """Yield the entities of the broker, all or those of one virtual host; not what an export leaves out."""
    if vhost is None:
        yield from _current_access(broker)
    chosen = [found for name, found in list(broker.vhost_by_name.items()) if vhost in (None, name)]
    names = {found.name for found in chosen}
    for policy in list(broker.policies.values()):
        if policy.vhost not in names:
            continue
        if policy.is_operator:
            yield EntityKey("parameters", policy.vhost, (OPERATOR_POLICY, policy.name)), {"value": _rule(policy)}
        else:
            yield EntityKey("policies", policy.vhost, (policy.name,)), _rule(policy)
    for parameter in list(broker.parameters.values()):
        if parameter.vhost in names:
            yield (
                EntityKey("parameters", parameter.vhost, (parameter.component, parameter.name)),
                {"value": parameter.value},
            )
    for found in chosen:
        if found.record.limits:
            yield EntityKey("parameters", found.name, (VHOST_LIMITS, "limits")), {"value": dict(found.record.limits)}
        yield from _current_topology(found)


def binding_key(vhost: str, source: str, kind: str, destination: str, routing_key: str, arguments: Any) -> EntityKey:
    """Return the key of a binding."""
    shown = json.dumps(dict(arguments), sort_keys=True, default=str) if arguments else ""
    return EntityKey("bindings", vhost, (source, kind, destination, routing_key, shown))


def _wanted_vhost(vhost: model.VhostDefinition) -> State:
    metadata = vhost.effective_metadata
    state: State = {}
    if metadata.description is not None:
        state["description"] = metadata.description
    if metadata.tags is not None:
        state["tags"] = sorted(metadata.tags)
    if metadata.default_queue_type:
        state["default_queue_type"] = metadata.default_queue_type
    flags = {
        "protected_from_deletion": metadata.protected_from_deletion,
        "tracing": vhost.tracing,
        "trace_table": vhost.trace_table,
    }
    return state | {name: True for name, is_set in flags.items() if is_set}  # an import only sets them


def _wanted_parameter(records: Records, parameter: model.AnyParameter, vhost: str) -> tuple[EntityKey, State]:
    key = EntityKey("parameters", vhost, (parameter.component, parameter.name))
    if isinstance(parameter, model.OperatorPolicy):
        return key, {"value": _rule(records.operator_policy(vhost, parameter))}
    if isinstance(parameter, model.VhostLimits):
        return EntityKey("parameters", vhost, (VHOST_LIMITS, "limits")), {"value": dict(parameter.value)}
    return key, {"value": parameter.value}


def _wanted_topology(
    definitions: model.Definitions, broker: Broker, default_vhost: str
) -> Iterator[tuple[EntityKey, State]]:
    for exchange in definitions.exchanges:
        if exchange.name and not exchange.name.startswith(RESERVED_PREFIX):
            yield (
                EntityKey("exchanges", exchange.vhost or default_vhost, (exchange.name,)),
                {
                    "type": exchange.type,
                    "durable": exchange.durable,
                    "auto_delete": exchange.auto_delete,
                    "internal": exchange.internal,
                    "arguments": dict(exchange.arguments),
                },
            )
    types = default_types(definitions, broker)
    for queue in definitions.queues:
        if not queue.name.startswith(RESERVED_PREFIX):
            vhost = queue.vhost or default_vhost
            yield EntityKey("queues", vhost, (queue.name,)), _wanted_queue(queue, vhost, types[vhost])
    for binding in definitions.bindings:
        if binding.source:
            vhost = binding.vhost or default_vhost
            kind, arguments = binding.destination_type, binding.arguments
            yield binding_key(vhost, binding.source, kind, binding.destination, binding.routing_key, arguments), {}


def default_types(definitions: model.Definitions, broker: Broker) -> Mapping[str, str]:
    """Return the type of queues without one for each virtual host, once the definitions are applied."""
    types: defaultdict[str, str] = defaultdict(lambda: broker.queue_rules.default_type)
    for name, existing in broker.vhost_by_name.items():
        types[name] = existing.record.default_queue_type or types[name]
    for vhost in definitions.vhosts:
        types[vhost.name] = vhost.effective_metadata.default_queue_type or types[vhost.name]
    return types


def _wanted_queue(queue: model.QueueDefinition, vhost: str, default_type: str) -> State:
    arguments = queue.arguments_in(default_type)
    declared = QueueDeclaration(vhost, queue.name, queue.durable, None, queue.auto_delete, arguments)
    return {
        "durable": queue.durable,
        "auto_delete": queue.auto_delete,
        "arguments": _queue_arguments(declared.typed(default_type).arguments),
    }


def _current_access(broker: Broker) -> Iterator[tuple[EntityKey, State]]:
    directory = broker.directory
    for user in list(directory.user_by_name.values()):
        yield (
            EntityKey("users", "", (user.name,)),
            {
                "tags": sorted(map(str, user.tags)),
                "password_hash": user.password_hash,
                "limits": dict(user.limits),
            },
        )
    for vhost in list(broker.vhost_by_name.values()):
        record = vhost.record
        yield (
            EntityKey("vhosts", "", (vhost.name,)),
            {
                "description": record.description,
                "tags": sorted(map(str, record.tags)),
                "default_queue_type": record.default_queue_type or broker.queue_rules.default_type,
                "protected_from_deletion": record.is_protected,
                "tracing": record.tracing,
                "trace_table": record.trace_table,
            },
        )
    for permission in list(directory.permissions):
        state = {"configure": permission.configure, "write": permission.write, "read": permission.read}
        yield EntityKey("permissions", permission.vhost, (permission.user,)), state
    for topic in list(directory.topic_permissions):
        key = EntityKey("topic_permissions", topic.vhost, (topic.user, topic.exchange))
        yield key, {"write": topic.write, "read": topic.read}
    for parameter in list(broker.parameters.values()):
        if not parameter.vhost:
            yield EntityKey("global_parameters", "", (parameter.name,)), {"value": parameter.value}


def _current_topology(vhost: VirtualHost) -> Iterator[tuple[EntityKey, State]]:
    for exchange in list(vhost.exchange_by_name.values()):
        if exchange.name and not exchange.name.startswith(RESERVED_PREFIX):
            yield (
                EntityKey("exchanges", vhost.name, (exchange.name,)),
                {
                    "type": exchange.type_name,
                    "durable": exchange.is_durable,
                    "auto_delete": exchange.is_auto_delete,
                    "internal": exchange.is_internal,
                    "arguments": dict(exchange.arguments),
                },
            )
    for queue in list(vhost.queue_by_name.values()):
        if queue.owner is None and not queue.name.startswith(RESERVED_PREFIX):
            yield (
                EntityKey("queues", vhost.name, (queue.name,)),
                {
                    "durable": queue.is_durable,
                    "auto_delete": queue.is_auto_delete,
                    "arguments": _queue_arguments(queue.arguments),
                },
            )
    for binding in list(vhost.bindings):
        destination = binding.destination
        if getattr(destination, "owner", None) is None:
            kind = "exchange" if isinstance(destination, Exchange) else "queue"
            source, key = binding.source.name, binding.routing_key
            yield binding_key(vhost.name, source, kind, destination.name, key, binding.arguments), {}


def _queue_arguments(arguments: Any) -> State:
    """Return the arguments without the type of classic queues: RabbitMQ 4 exports it, RabbitMQ 3 does not."""
    return {name: value for name, value in arguments.items() if (name, value) != ("x-queue-type", "classic")}


def _rule(policy: PolicyRecord) -> State:
    return {
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "definition": dict(policy.definition),
        "priority": policy.priority,
    }
