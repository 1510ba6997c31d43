"""The plan of declarative definitions: the entities to create, change and delete."""

from collections.abc import Collection, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Final

from gateway.definitions import model
from gateway.definitions.foreign import ForeignNames
from gateway.definitions.secrets import UnknownSecret, restored
from gateway.definitions.states import (
    CATEGORIES,
    OPERATOR_POLICY,
    VHOST_LIMITS,
    EntityKey,
    State,
    binding_key,
    current_states,
    wanted_states,
)
from gateway.kernel.broker.broker import Broker
from gateway.kernel.errors import NotFound
from gateway.kernel.routing.binding import Destination

#: Categories whose entities cannot be changed, only deleted and created again, which would lose messages.
_FIXED: Final = frozenset({"exchanges", "queues"})

#: Categories whose values may have URIs with passwords.
_WITH_SECRETS: Final = frozenset({"parameters", "global_parameters"})

#: Global parameters that every broker has of its own.
_OWN_PARAMETERS: Final = frozenset({"cluster_name", "internal_cluster_id", "cluster_tags"})

#: Entities that are compared in one step.
_STEP: Final = 50


class Verb(Enum):
    """The part of a plan for one entity. ``CONFLICT``: it cannot be done, and the plan cannot be applied."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a plan, with the values that differ before and after. ``reason`` is that of a conflict."""

    verb: Verb
    key: EntityKey
    before: State | None = None
    after: State | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps in the order in which they are applied: deletions last, what depends on others first."""

    steps: list[Step]

    @property
    def conflicts(self) -> list[Step]:
        """The steps that cannot be applied."""
        return [step for step in self.steps if step.verb is Verb.CONFLICT]

    @property
    def deletions(self) -> list[Step]:
        """The steps that delete something."""
        return [step for step in self.steps if step.verb is Verb.DELETE]


def planning(
    definitions: model.Definitions,
    broker: Broker,
    vhost: str | None,
    *,
    pruned: Collection[str] = (),
    kept_users: Collection[str] = (),
) -> Generator[None, None, Plan]:
    """Return the steps that compare definitions with the broker, whole or in one virtual host.

    In the ``pruned`` categories, entities that the file does not have are deleted, except ``kept_users``, what every
    broker has, and what clients declared for themselves.
    """
    current: dict[EntityKey, State] = {}
    for number, (key, state) in enumerate(current_states(broker, vhost)):
        current[key] = state
        if number % _STEP == 0:
            yield
    found: list[Step] = []
    seen: set[EntityKey] = set()
    for number, (key, wanted) in enumerate(wanted_states(definitions, broker, vhost or "/")):
        seen.add(key)
        if (step := _compared(key, current.get(key), wanted)) is not None:
            found.append(step)
        if number % _STEP == 0:
            yield
    deletions: list[Step] = []
    if pruned:
        foreign = ForeignNames()
        yield from foreign.finding(broker, vhost)
        for number, (key, state) in enumerate(current.items()):
            if key not in seen and key.category in pruned and not _is_kept(key, kept_users, foreign):
                deletions.append(_deletion(key, state))
            if number % _STEP == 0:
                yield
        deletions.sort(key=lambda step: -CATEGORIES.index(step.key.category))
    found.sort(key=lambda step: CATEGORIES.index(step.key.category))
    return Plan([*found, *_without_implied(deletions)])


def deleting(plan: Plan, broker: Broker) -> Iterator[None]:
    """Return the steps that delete the entities of a plan; those that no longer exist are skipped."""
    for step in plan.deletions:
        with suppress(NotFound):
            _delete(broker, step.key)
        yield


def _compared(key: EntityKey, current: State | None, wanted: State) -> Step | None:
    if key.category in _WITH_SECRETS:
        try:
            wanted = wanted | {
                "value": restored(wanted["value"], None if current is None else current["value"], "value")
            }
        except UnknownSecret as unknown:
            return Step(Verb.CONFLICT, key, current, wanted, str(unknown))
    if current is None:
        return Step(Verb.CREATE, key, None, wanted)
    changed = [name for name, value in wanted.items() if current.get(name) != value]
    if not changed:
        return None
    before = {name: current.get(name) for name in changed}
    after = {name: wanted[name] for name in changed}
    if key.category in _FIXED:
        reason = "it exists with other properties, which cannot be changed: delete it first"
        return Step(Verb.CONFLICT, key, before, after, reason)
    return Step(Verb.CHANGE, key, before, after)


def _deletion(key: EntityKey, state: State) -> Step:
    if key.category == "vhosts" and state.get("protected_from_deletion"):
        return Step(Verb.CONFLICT, key, state, None, "it is protected from deletion")
    return Step(Verb.DELETE, key, state, None)


def _is_kept(key: EntityKey, kept_users: Collection[str], foreign: ForeignNames) -> bool:
    if key.category == "global_parameters":
        return key.names[0] in _OWN_PARAMETERS
    if key.category in ("users", "permissions", "topic_permissions"):
        return key.names[0] in kept_users
    return foreign.has(key)


def _without_implied(deletions: list[Step]) -> list[Step]:
    """Leave out entities that are deleted with their virtual host, user, queue or exchange."""
    keys = {step.key for step in deletions if step.verb is Verb.DELETE}
    vhosts = {key.names[0] for key in keys if key.category == "vhosts"}
    users = {key.names[0] for key in keys if key.category == "users"}
    ends = {(key.vhost, key.category, key.names[0]) for key in keys if key.category in _FIXED}

    def is_implied(key: EntityKey) -> bool:
        if key.vhost in vhosts and key.vhost:
            return True
        if key.category in ("permissions", "topic_permissions"):
            return key.names[0] in users
        if key.category == "bindings":
            source, kind, destination, *_ = key.names
            return (key.vhost, "exchanges", source) in ends or (key.vhost, f"{kind}s", destination) in ends
        return False

    return [step for step in deletions if not is_implied(step.key)]


def _delete(broker: Broker, key: EntityKey) -> None:
    """Delete one entity. :raises NotFound: if it is gone."""
    names = key.names
    match key.category:
        case "users":
            broker.directory.remove_user(names[0])
        case "vhosts":
            if names[0] in broker.vhost_by_name:
                broker.delete_vhost(names[0])
        case "permissions":
            if broker.directory.permission(key.vhost, names[0]) is not None:
                broker.directory.remove_permission(key.vhost, names[0])
        case "topic_permissions":
            broker.directory.remove_topic_permission(key.vhost, names[0], names[1])
        case "global_parameters" | "parameters" | "policies":
            _delete_setting(broker, key)
        case _:
            _delete_topology(broker, key)


def _delete_setting(broker: Broker, key: EntityKey) -> None:
    component, name = (key.names[0], key.names[-1]) if key.category == "parameters" else ("", key.names[0])
    if component == VHOST_LIMITS:
        broker.limit_vhost(key.vhost, {})
    elif key.category == "policies" or component == OPERATOR_POLICY:
        policy = broker.policies.get((key.vhost, name, component == OPERATOR_POLICY))
        if policy is not None:
            broker.remove_policy(policy)
    else:
        parameter = broker.parameters.get((key.vhost, component, name))
        if parameter is not None:
            broker.parameters.remove(parameter)


def _delete_topology(broker: Broker, key: EntityKey) -> None:
    vhost = broker.vhost(key.vhost)
    if key.category == "queues":
        vhost.delete_queue(vhost.queue(key.names[0]))
    elif key.category == "exchanges":
        vhost.delete_exchange(key.names[0])
    else:
        source, kind, name, routing_key, shown = key.names
        destination: Destination = vhost.queue(name) if kind == "queue" else vhost.exchange(name)
        for binding in vhost.bindings.to(destination):
            is_like = binding.source.name == source and binding.routing_key == routing_key
            if is_like and _is_same(key, binding.arguments, shown):
                vhost.unbind(binding.source, destination, routing_key, binding.arguments)
                return


def _is_same(key: EntityKey, arguments: object, shown: str) -> bool:
    source, kind, name, routing_key, _ = key.names
    return binding_key(key.vhost, source, kind, name, routing_key, arguments).names[-1] == shown
