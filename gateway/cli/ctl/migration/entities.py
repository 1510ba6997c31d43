"""Findings about exported definitions: each entity is checked as an import would check it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from gateway.cli.ctl.migration.finding import MigrationFinding, MoveVerdict
from gateway.cli.ctl.values import Json, JsonObject, number, objects, part, text
from gateway.kernel.errors import Refused
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.settings.offered_settings import OfferedSettings
from gateway.kernel.settings.policy_checks import OBSOLETE, require_valid_policy
from gateway.kernel.settings.queue_arguments import require_valid
from gateway.patterns import compile_pattern

#: The exchange types that each virtual host has, or that a built-in plugin adds.
EXCHANGE_TYPES: Final = frozenset(
    {
        *("direct", "fanout", "topic", "headers", "x-consistent-hash", "x-delayed-message", "x-jms-topic"),
        *("x-local-random", "x-lvc", "x-message-deduplication", "x-modulus-hash", "x-random", "x-recent-history"),
        *("x-rtopic", "x-super-stream"),
    }
)

_HASHES: Final = frozenset(
    {"", "rabbit_password_hashing_sha256", "rabbit_password_hashing_sha512", "rabbit_password_hashing_md5"}
)
_COMPONENTS: Final = frozenset(
    {"shovel", "federation-upstream", "federation-upstream-set", "vhost-limits", "operator_policy", "mqtt-bridge"}
)
_MIRRORING: Final = "mirroring is accepted, without effect; a cluster keeps all queues on three servers"


def findings_of(definitions: Json) -> Iterator[MigrationFinding]:
    """Yield the findings about a document of definitions: entities that are the same are counted."""
    yield from _users(objects(part(definitions, "users")))
    yield from _counted("virtual host", objects(part(definitions, "vhosts")), lambda each: None)
    permissions = objects(part(definitions, "permissions"))
    yield from _counted("permission", permissions, lambda each: _patterns(each, "configure", "write", "read"))
    topics = objects(part(definitions, "topic_permissions"))
    yield from _counted("topic permission", topics, lambda each: _patterns(each, "write", "read"))
    yield from _exchanges(objects(part(definitions, "exchanges")))
    for queue_type, queues in _by_type(objects(part(definitions, "queues"))):
        yield from _counted(f"queue of type {queue_type}", queues, _queue)
    yield from _counted("binding", objects(part(definitions, "bindings")), lambda each: None)
    yield from _policies(objects(part(definitions, "policies")), is_operator=False)
    parameters = objects(part(definitions, "parameters"))
    operator = [each for each in parameters if text(each, "component") == "operator_policy"]
    yield from _policies([_policy_of(each) for each in operator], is_operator=True)
    yield from _parameters(each for each in parameters if text(each, "component") != "operator_policy")


def _counted(
    kind: str, entries: list[JsonObject], fault: Callable[[JsonObject], str | None]
) -> Iterator[MigrationFinding]:
    """Yield one finding for each entry with a fault, and one for all others."""
    faults = [(each, wrong) for each in entries if (wrong := fault(each)) is not None]
    for each, wrong in faults:
        yield MigrationFinding(kind, _name(each), MoveVerdict.DIFFERS, " ".join(wrong.split()))
    if count := len(entries) - len(faults):
        yield MigrationFinding(kind, "", MoveVerdict.SAME, "", count)


def _name(entry: JsonObject) -> str:
    name = text(entry, "name") or text(entry, "user")
    vhost = text(entry, "vhost")
    return f"{name} in {vhost}" if vhost else name


def _refusal(check: Callable[[], object]) -> str | None:
    try:
        check()
    except Refused as refusal:
        return f"refused: {refusal}"
    return None


def _users(users: list[JsonObject]) -> Iterator[MigrationFinding]:
    def fault(user: JsonObject) -> str | None:
        algorithm = text(user, "hashing_algorithm")
        return None if algorithm in _HASHES else f"the hash {algorithm} is unknown: set the password again"

    yield from _counted("user", users, fault)


def _patterns(entry: JsonObject, *names: str) -> str | None:
    faults = (_refusal(lambda name=name: compile_pattern(text(entry, name))) for name in names)  # type: ignore[misc]
    return next((fault for fault in faults if fault is not None), None)


def _exchanges(exchanges: list[JsonObject]) -> Iterator[MigrationFinding]:
    for kind, count in sorted(Counter(text(each, "type") for each in exchanges).items()):
        if kind in EXCHANGE_TYPES:
            yield MigrationFinding("exchange", kind, MoveVerdict.SAME, "", count)
        else:
            note = "no plugin has this exchange type; docs/plugins/exchange-type.md shows how to write one"
            yield MigrationFinding("exchange", kind, MoveVerdict.MISSING, note, count)


def _by_type(queues: list[JsonObject]) -> Iterator[tuple[str, list[JsonObject]]]:
    types: dict[str, list[JsonObject]] = {}
    for queue in queues:
        types.setdefault(text(queue, "type") or text(queue, "arguments", "x-queue-type") or "classic", []).append(queue)
    yield from sorted(types.items())


def _queue(queue: JsonObject) -> str | None:
    arguments = part(queue, "arguments")
    entity = f"queue '{text(queue, 'name')}' in vhost '{text(queue, 'vhost')}'"
    given = arguments if isinstance(arguments, dict) else {}
    return _refusal(lambda: require_valid(entity, given, OfferedSettings()))  # type: ignore[arg-type]


def _policy_of(parameter: JsonObject) -> JsonObject:
    value = part(parameter, "value")
    return {**parameter, **value} if isinstance(value, dict) else parameter


def _policies(policies: list[JsonObject], *, is_operator: bool) -> Iterator[MigrationFinding]:
    def fault(policy: JsonObject) -> str | None:
        definition = part(policy, "definition")
        keys = definition if isinstance(definition, dict) else {}
        record = PolicyRecord(
            text(policy, "vhost"), text(policy, "name"), is_operator, text(policy, "pattern"),
            text(policy, "apply-to") or "all", number(policy, "priority"), keys,  # type: ignore[arg-type]
        )  # fmt: skip
        refused = _refusal(lambda: require_valid_policy(record, compile_pattern, OfferedSettings()))
        return refused or (_MIRRORING if OBSOLETE & keys.keys() else None)

    yield from _counted("operator policy" if is_operator else "policy", policies, fault)


def _parameters(parameters: Iterable[JsonObject]) -> Iterator[MigrationFinding]:
    for component, count in sorted(Counter(text(each, "component") for each in parameters).items()):
        if component in _COMPONENTS:
            yield MigrationFinding("parameter", component, MoveVerdict.SAME, "", count)
        else:
            yield MigrationFinding("parameter", component, MoveVerdict.DIFFERS, "kept, without effect", count)
