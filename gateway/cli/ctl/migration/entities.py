"""Findings about exported definitions: each entity is checked as an import checks it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from gateway.cli.ctl.migration.finding import MigrationFinding, MoveVerdict
from gateway.cli.ctl.migration.import_trial import ImportTrial
from gateway.cli.ctl.migration.silent_changes import SilentChanges, queue_type
from gateway.cli.ctl.migration.trial_entry import TrialEntry
from gateway.cli.ctl.values import Json, part, text
from gateway.definitions.model import pairs_for_object
from gateway.kernel.errors import Refused
from gateway.kernel.features.interceptors import routing_type
from gateway.kernel.settings.policy_checks import OBSOLETE

#: Global parameters that have an effect here, or that RabbitMQ keeps for itself.
_GLOBAL_PARAMETERS: Final = frozenset(
    {
        *("cluster_name", "cluster_tags", "internal_cluster_id", "imported_definition_hash_value"),
        *("mqtt_port_to_vhost_mapping", "mqtt_default_vhosts"),
    }
)

MIRRORING: Final = "mirroring is accepted, without effect; a cluster keeps all queues on three servers"
OTHER_HASH: Final = "another hash: a value may reach another queue than there"
_OTHER_HASHES: Final = ("x-consistent-hash", "x-modulus-hash")
_WITHOUT_EFFECT: Final = "kept, without effect"

#: The kinds of entries without rows by type, by their categories in definitions.
_KINDS: Final = {
    "users": "user",
    "vhosts": "virtual host",
    "permissions": "permission",
    "topic_permissions": "topic permission",
    "policies": "policy",
}

_Difference = Callable[[TrialEntry], str | None]


def findings_of(definitions: Json) -> Iterator[MigrationFinding]:
    """Yield the findings about a document of definitions: entities that are the same are counted."""
    trial = ImportTrial(definitions)
    changes = SilentChanges(trial)
    for category, kind in _KINDS.items():
        yield from _counted(kind, trial.entries(category), _mirroring_of if category == "policies" else _nothing)
    yield from _exchanges(trial, changes)
    for found, queues in _grouped(trial.entries("queues"), queue_type):
        yield from _counted(f"queue of type {found}", queues, changes.of_queue)
    yield from _bindings(trial, changes)
    for component, parameters in _grouped(trial.entries("parameters"), lambda each: text(each.fields, "component")):
        if component == "operator_policy":
            yield from _counted("operator policy", parameters, _mirroring_of)
        else:
            yield from _parameters("parameter", component, parameters, component in trial.components)
    for name, parameters in _grouped(trial.entries("global_parameters"), lambda each: text(each.fields, "name")):
        yield from _parameters("global parameter", name, parameters, name in _GLOBAL_PARAMETERS)


def _nothing(entry: TrialEntry) -> str | None:
    return None


def _counted(
    kind: str, entries: list[TrialEntry], difference: _Difference = _nothing, name: str = ""
) -> Iterator[MigrationFinding]:
    """Yield one finding for each entry that is refused or has a difference, and one for all others."""
    count = 0
    for entry in entries:
        note = difference(entry) if entry.refusal is None else f"refused: {entry.refusal}"
        if note is None:
            count += 1
        else:
            yield MigrationFinding(kind, entry.name, MoveVerdict.DIFFERS, note)
    if count:
        yield MigrationFinding(kind, name, MoveVerdict.SAME, "", count)


def _grouped(entries: Iterable[TrialEntry], key: Callable[[TrialEntry], str]) -> list[tuple[str, list[TrialEntry]]]:
    groups: dict[str, list[TrialEntry]] = {}
    for entry in entries:
        groups.setdefault(key(entry), []).append(entry)
    return sorted(groups.items())


def _mirroring_of(policy: TrialEntry) -> str | None:
    """Return the note about a policy or operator policy with keys of mirroring."""
    is_operator = policy.category == "parameters"
    definition = part(policy.fields, *(("value", "definition") if is_operator else ("definition",)))
    keys = pairs_for_object(definition)
    return MIRRORING if isinstance(keys, dict) and OBSOLETE & keys.keys() else None


def _bindings(trial: ImportTrial, changes: SilentChanges) -> Iterator[MigrationFinding]:
    """Yield a finding for each end that an import does not find, and the findings about the other bindings."""
    missing: Counter[str] = Counter()
    others: list[TrialEntry] = []
    for binding in trial.entries("bindings"):
        end = changes.missing_end(binding) if binding.refusal is None else None
        if end is None:
            others.append(binding)
        else:
            missing[end] += 1
    yield from _counted("binding", others)
    for end, count in sorted(missing.items()):
        yield MigrationFinding("binding", end, MoveVerdict.DIFFERS, "left out: an import makes no such end", count)


def _exchanges(trial: ImportTrial, changes: SilentChanges) -> Iterator[MigrationFinding]:
    """Yield a finding for each type that the gateway lacks, and the findings about the exchanges of other types."""
    lacking: Counter[str] = Counter()
    hashing: Counter[str] = Counter()
    others: list[TrialEntry] = []
    for exchange in trial.entries("exchanges"):
        routing = _routing_type(exchange)
        if routing is not None and routing not in trial.exchange_types:
            lacking[routing] += 1
        elif routing in _OTHER_HASHES and exchange.refusal is None:
            hashing[routing] += 1
        else:
            others.append(exchange)
    for kind, exchanges in _grouped(others, lambda each: text(each.fields, "type")):
        yield from _counted("exchange", exchanges, changes.of_exchange, kind)
    for kind, count in sorted(hashing.items()):
        yield MigrationFinding("exchange", kind, MoveVerdict.DIFFERS, OTHER_HASH, count)
    for kind, count in sorted(lacking.items()):
        note = "no plugin has this exchange type; docs/plugins/exchange-type.md shows how to write one"
        yield MigrationFinding("exchange", kind, MoveVerdict.MISSING, note, count)


def _routing_type(exchange: TrialEntry) -> str | None:
    """Return the type that routes for an exchange, ``None`` if its arguments do not name one."""
    arguments = part(exchange.fields, "arguments")
    try:
        return routing_type(text(exchange.fields, "type"), arguments if isinstance(arguments, dict) else {})  # type: ignore[arg-type]
    except Refused:
        return None


def _parameters(kind: str, name: str, parameters: list[TrialEntry], has_effect: bool) -> Iterator[MigrationFinding]:
    if has_effect:
        yield from _counted(kind, parameters, name=name)
    else:
        yield MigrationFinding(kind, name, MoveVerdict.DIFFERS, _WITHOUT_EFFECT, len(parameters))
