"""The policy keys, one row each, and the validation of policies with RabbitMQ's error texts (R139, R140).

To add a key, add a row to ``KEYS``.
"""

from collections.abc import Callable, Mapping, Set
from typing import Final, NamedTuple, NoReturn

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.bounds import (
    LARGEST_COUNT,
    LEAST_INTEGER,
    LONGEST_MS,
    is_valid_key,
    require_arguments,
    require_name,
)
from gateway.kernel.messages.message import Value
from gateway.kernel.patterns import Compile
from gateway.kernel.settings.erlang_terms import as_erlang
from gateway.kernel.settings.max_age import age_ms
from gateway.kernel.settings.offered_settings import OfferedSettings
from gateway.kernel.settings.queue_arguments import LARGEST_FILTER, LARGEST_SEGMENT, SMALLEST_FILTER

#: The valid values of ``apply-to``.
APPLY_TO: Final = ("all", "exchanges", "queues", "classic_queues", "quorum_queues", "streams")

Claim = Callable[[Value], bool]
"""Returns whether a value is valid."""

Merge = Callable[[int, int], int]
"""Returns the effective one of two values."""


def _integer(least: int, most: int = LARGEST_COUNT) -> Claim:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _one_of(*allowed: Value) -> Claim:
    return lambda value: not isinstance(value, bool) and value in allowed


def _is_age(value: Value) -> bool:
    return age_ms(value) is not None


def _is_truth(value: Value) -> bool:
    return isinstance(value, bool)


def _is_text(value: Value) -> bool:
    return isinstance(value, str)


def _delivery_limit(one: int, other: int) -> int:
    """Return the smaller of two limits; a negative one means no limit, and then the larger (R140)."""
    return max(one, other) if one < 0 or other < 0 else min(one, other)


def _is_delay(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LONGEST_MS


def _are_delays(value: Value) -> bool:
    return isinstance(value, list) and all(map(_is_delay, value))


class PolicyKey(NamedTuple):
    """The check of a policy key's value, the text for an invalid one, and its merge rule.

    If an argument and a policy both set it, ``merge`` selects the stricter value; without it one source has precedence.
    Operator policies may set the keys with a ``merge`` only.
    """

    is_valid: Claim
    fault: str
    merge: Merge | None = None


#: The policy keys; those of ``OBSOLETE`` are accepted besides.
KEYS: Final[Mapping[str, PolicyKey]] = {
    "alternate-exchange": PolicyKey(is_valid_key, "is not a valid alternate exchange name"),
    "consumer-timeout": PolicyKey(_integer(0, LONGEST_MS), "is not a valid consumer timeout", min),
    "dead-letter-exchange": PolicyKey(is_valid_key, "is not a valid dead letter exchange name"),
    "dead-letter-routing-key": PolicyKey(is_valid_key, "is not a valid dead letter routing key"),
    "dead-letter-strategy": PolicyKey(_one_of("at-most-once", "at-least-once"), "is not a valid dead letter strategy"),
    "delivery-limit": PolicyKey(_integer(-1), "is not a valid delivery limit", _delivery_limit),
    "expires": PolicyKey(_integer(1, LONGEST_MS), "is not a valid queue expiry", min),
    "federation-upstream": PolicyKey(_is_text, "is not a valid federation upstream name"),
    "federation-upstream-pattern": PolicyKey(_is_text, "is not a valid federation upstream pattern name"),
    "federation-upstream-set": PolicyKey(_is_text, "is not a valid federation upstream set name"),
    "initial-cluster-size": PolicyKey(_integer(1), "is not a valid initial cluster size"),
    "max-age": PolicyKey(_is_age, "is not a valid max age", min),
    "max-in-memory-bytes": PolicyKey(_integer(0), "is not a valid maximum memory in bytes", min),
    "max-in-memory-length": PolicyKey(_integer(0), "is not a valid maximum memory in bytes", min),
    "max-length": PolicyKey(_integer(0), "is not a valid maximum length", min),
    "max-length-bytes": PolicyKey(_integer(0), "is not a valid maximum length in bytes", min),
    "message-ttl": PolicyKey(_integer(0, LONGEST_MS), "is not a valid message TTL", min),
    "overflow": PolicyKey(
        _one_of("drop-head", "reject-publish", "reject-publish-dlx"), "is not a valid overflow value"
    ),
    "queue-leader-locator": PolicyKey(
        _one_of("client-local", "balanced", "least-leaders", "random"),
        "is not a valid queue leader locator value",
    ),
    "queue-master-locator": PolicyKey(
        _one_of("min-masters", "client-local", "random"),
        "invalid queue-master-locator value",
    ),
    "queue-mode": PolicyKey(_one_of("default", "lazy"), "is not a valid queue-mode value"),
    "queue-version": PolicyKey(_one_of(1, 2), "is not a valid queue-version value"),
    "stream-filter-size-bytes": PolicyKey(_integer(SMALLEST_FILTER, LARGEST_FILTER), "is not a valid filter size"),
    "stream-max-segment-size-bytes": PolicyKey(_integer(0, LARGEST_SEGMENT), "is not a valid segment size"),
    # not in RabbitMQ
    "archive": PolicyKey(_is_truth, "is not a valid archive value"),
    "archive-table": PolicyKey(_is_text, "is not a valid archive table"),
    "cache-size": PolicyKey(_integer(1), "is not a valid cache size"),
    "cache-ttl": PolicyKey(_integer(1, LONGEST_MS), "is not a valid cache TTL"),
    "delayed-delivery": PolicyKey(_is_truth, "is not a valid delayed-delivery value"),
    "expire-mode": PolicyKey(_one_of("head", "anywhere"), "is not a valid expire mode"),
    "message-deduplication": PolicyKey(_is_truth, "is not a valid message-deduplication value"),
    "retry-delays": PolicyKey(_are_delays, "is not a valid list of retry delays"),
}

#: Keys of classic mirroring, which was removed: accepted, so that definitions of older brokers can be imported (R142).
OBSOLETE: Final = frozenset(
    {
        "ha-mode",
        "ha-params",
        "ha-promote-on-failure",
        "ha-promote-on-shutdown",
        "ha-sync-batch-size",
        "ha-sync-mode",
    }
)

#: The keys of federation, of which a policy may have one.
FEDERATION: Final = ("federation-upstream", "federation-upstream-set", "federation-upstream-pattern")

#: The keys of operator policies that have an effect: limits only (R140). RabbitMQ 3.10 accepts mirroring there too.
OPERATOR_KEYS: Final = frozenset(name for name, key in KEYS.items() if key.merge is not None)


#: The reason for which an installation has no archives.
NO_ARCHIVES: Final = "archives need the Python library pyarrow, which is not installed"


def require_valid_policy(
    record: PolicyRecord,
    compile_pattern: Compile,
    offered: OfferedSettings,
    archive_tables: Set[str] | None = frozenset(),
) -> None:
    """Check a policy that may have keys of the plugins of its virtual host, and name one of the ``archive_tables``.

    These are ``None`` where nothing can write archives.

    :raises PreconditionFailed: with RabbitMQ's error text.
    """
    require_usable_policy(record, compile_pattern)
    if archive_tables is None and record.definition.get("archive") is True:
        _refuse(NO_ARCHIVES)
    table = record.definition.get("archive-table")
    if isinstance(table, str) and table not in (archive_tables or ()):
        _refuse(f"no schema in archive.schemas describes the archive-table '{table}'")
    unknown = {}
    for key, value in record.definition.items():
        if _is_known(key, record.is_operator):
            continue
        if key not in offered or (record.is_operator and offered.merge_of(key) is None):
            unknown[key] = value
        elif (fault := offered.fault_of(key, value)) is not None:
            _refuse(f"{as_erlang(value)} is not a valid {key}: {fault}")
    if unknown:
        terms = ",".join(f"{{{as_erlang(key)},{as_erlang(value)}}}" for key, value in unknown.items())
        _refuse(f"[{terms}] are not recognised policy settings")


def require_usable_policy(record: PolicyRecord, compile_pattern: Compile) -> None:
    """Check a policy, except keys that are not built in: the plugin of a stored policy may be missing.

    :raises PreconditionFailed: with RabbitMQ's error text.
    """
    entity = f"{'operator policy' if record.is_operator else 'policy'} '{record.name}' in vhost '{record.vhost}'"
    require_name("policy", record.name)
    if not LEAST_INTEGER <= record.priority <= LARGEST_COUNT:
        _refuse("priority is a number of more than 64 bits")
    require_arguments(entity, record.definition)
    try:
        compile_pattern(record.pattern)
    except PreconditionFailed as refusal:
        _refuse(f"pattern should be regular expression but is invalid: {refusal}")
    if record.apply_to not in APPLY_TO:
        _refuse(f"apply-to '{record.apply_to}' unrecognised; should be one of {', '.join(APPLY_TO)}")
    if not record.definition:
        _refuse("no policy provided")
    for key, value in record.definition.items():
        if _is_known(key, record.is_operator) and key in KEYS and not KEYS[key].is_valid(value):
            _refuse(f"{as_erlang(value)} {KEYS[key].fault}")
    if "archive-table" in record.definition and record.definition.get("archive") is not True:
        _refuse("archive-table has no effect without archive")
    _require_valid_federation(record, compile_pattern)


def _require_valid_federation(record: PolicyRecord, compile_pattern: Compile) -> None:
    if sum(key in record.definition for key in FEDERATION) > 1:
        _refuse(f"cannot specify {', '.join(FEDERATION[:-1])} and {FEDERATION[-1]} together")
    pattern = record.definition.get("federation-upstream-pattern")
    if isinstance(pattern, str):
        try:
            compile_pattern(pattern)
        except PreconditionFailed as refusal:
            _refuse(f"could not compile pattern {pattern} to a regular expression. Error: {refusal}")


def ineffective_keys(record: PolicyRecord, offered: OfferedSettings) -> str:
    """Return a sentence with the keys of a policy that have no effect; empty if all have."""
    idle = sorted(OBSOLETE.intersection(record.definition))
    idle += [
        f"{key} (no enabled plugin offers it)"
        for key in sorted(record.definition)
        if not _is_known(key, record.is_operator) and key not in offered
    ]
    return f"no effect: {', '.join(idle)}" if idle else ""


def _is_known(key: str, is_operator: bool) -> bool:
    if is_operator:
        return key in OPERATOR_KEYS or key in OBSOLETE
    return key in KEYS or key in OBSOLETE


def _refuse(reason: str) -> NoReturn:
    raise PreconditionFailed(f"Validation failed\n\n{reason}\n")
