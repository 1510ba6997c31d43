"""Findings about exported definitions: each entity is checked as an import checks it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from gateway.cli.ctl.migration.finding import MigrationFinding, MoveVerdict
from gateway.cli.ctl.migration.import_trial import ImportTrial
from gateway.cli.ctl.values import Json, JsonObject, part, text
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
_WITHOUT_EFFECT: Final = "kept, without effect"

#: The kinds of entries without rows by type, by their categories in definitions.
_KINDS: Final = {
    "users": "user",
    "vhosts": "virtual host",
    "permissions": "permission",
    "topic_permissions": "topic permission",
    "bindings": "binding",
    "policies": "policy",
}

_Entry = tuple[JsonObject, str | None]


def findings_of(definitions: Json) -> Iterator[MigrationFinding]:
    """Yield the findings about a document of definitions: entities that are the same are counted."""
    trial = ImportTrial(definitions)
    for category, kind in _KINDS.items():
        yield from _counted(kind, trial.entries(category), _mirroring_of if category == "policies" else _nothing)
    yield from _exchanges(trial)
    for queue_type, queues in _grouped(trial.entries("queues"), _queue_type):
        yield from _counted(f"queue of type {queue_type}", queues)
    for component, parameters in _grouped(trial.entries("parameters"), lambda each: text(each, "component")):
        if component == "operator_policy":
            yield from _counted("operator policy", parameters, lambda each: _mirroring_of(part(each, "value")))
        else:
            yield from _parameters("parameter", component, parameters, component in trial.components)
    for name, parameters in _grouped(trial.entries("global_parameters"), lambda each: text(each, "name")):
        yield from _parameters("global parameter", name, parameters, name in _GLOBAL_PARAMETERS)


def _nothing(entry: JsonObject) -> str | None:
    return None


def _counted(
    kind: str, entries: list[_Entry], difference: Callable[[JsonObject], str | None] = _nothing, name: str = ""
) -> Iterator[MigrationFinding]:
    """Yield one finding for each entry that is refused or has a difference, and one for all others."""
    count = 0
    for entry, refusal in entries:
        note = difference(entry) if refusal is None else f"refused: {refusal}"
        if note is None:
            count += 1
        else:
            yield MigrationFinding(kind, _name(entry), MoveVerdict.DIFFERS, note)
    if count:
        yield MigrationFinding(kind, name, MoveVerdict.SAME, "", count)


def _name(entry: JsonObject) -> str:
    name = text(entry, "name") or text(entry, "user") or f"{text(entry, 'source')} to {text(entry, 'destination')}"
    vhost = text(entry, "vhost")
    return f"{name} in {vhost}" if vhost else name


def _grouped(entries: Iterable[_Entry], key: Callable[[JsonObject], str]) -> list[tuple[str, list[_Entry]]]:
    groups: dict[str, list[_Entry]] = {}
    for entry in entries:
        groups.setdefault(key(entry[0]), []).append(entry)
    return sorted(groups.items())


def _mirroring_of(rule: Json) -> str | None:
    definition = part(rule, "definition")
    return MIRRORING if isinstance(definition, dict) and OBSOLETE & definition.keys() else None


def _queue_type(queue: JsonObject) -> str:
    return text(queue, "type") or text(queue, "arguments", "x-queue-type") or "classic"


def _exchanges(trial: ImportTrial) -> Iterator[MigrationFinding]:
    """Yield a finding for each type that the gateway lacks, and the findings about the exchanges of other types."""
    lacking: Counter[str] = Counter()
    others: list[_Entry] = []
    for exchange, refusal in trial.entries("exchanges"):
        routing = _routing_type(exchange)
        if routing is not None and routing not in trial.exchange_types:
            lacking[routing] += 1
        else:
            others.append((exchange, refusal))
    for kind, exchanges in _grouped(others, lambda each: text(each, "type")):
        yield from _counted("exchange", exchanges, name=kind)
    for kind, count in sorted(lacking.items()):
        note = "no plugin has this exchange type; docs/plugins/exchange-type.md shows how to write one"
        yield MigrationFinding("exchange", kind, MoveVerdict.MISSING, note, count)


def _routing_type(exchange: JsonObject) -> str | None:
    """Return the type that routes for an exchange, ``None`` if its arguments do not name one."""
    arguments = part(exchange, "arguments")
    try:
        return routing_type(text(exchange, "type"), arguments if isinstance(arguments, dict) else {})  # type: ignore[arg-type]
    except Refused:
        return None


def _parameters(kind: str, name: str, parameters: list[_Entry], has_effect: bool) -> Iterator[MigrationFinding]:
    if has_effect:
        yield from _counted(kind, parameters, name=name)
    else:
        yield MigrationFinding(kind, name, MoveVerdict.DIFFERS, _WITHOUT_EFFECT, len(parameters))
