"""Upstreams of federation as parameters define them, validated with RabbitMQ's error texts."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gateway.bridges.broker_uri import BrokerUri, is_uri, parse_uri
from gateway.bridges.parameter_checks import (
    ParameterKey,
    each,
    faults_of,
    is_count,
    is_number,
    is_text,
    is_truth,
    one_of,
    require_none,
    uris_of,
)
from gateway.bridges.transfer import ShovelAckMode
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.kernel.messages.message import Value
from gateway.kernel.settings.erlang_terms import as_erlang

UPSTREAM: Final = "federation-upstream"
UPSTREAM_SET: Final = "federation-upstream-set"
UPSTREAM_PATTERN: Final = "federation-upstream-pattern"

#: The set that contains every upstream of the virtual host.
ALL: Final = "all"

_SCHEMES: Final = ("amqp", "amqps")

_SHARED: Final = (
    ParameterKey("exchange", is_text),
    ParameterKey("queue", is_text),
    ParameterKey("consumer-tag", is_text),
    ParameterKey("prefetch-count", is_count),
    ParameterKey("reconnect-delay", is_number),
    ParameterKey("max-hops", is_count),
    ParameterKey("expires", is_count),
    ParameterKey("message-ttl", is_count),
    ParameterKey("trust-user-id", is_truth),
    ParameterKey("ack-mode", one_of("no-ack", "on-publish", "on-confirm")),
    ParameterKey("queue-type", one_of("classic", "quorum")),
    ParameterKey("resource-cleanup-mode", one_of("default", "never")),
    # of RabbitMQ's links, whose channels and bindings these say how to use: links here need neither
    ParameterKey("channel-use-mode", one_of("multiple", "single")),
    ParameterKey("bind-nowait", is_truth),
)


def _is_upstream_uri(name: str, value: Value) -> str:
    return is_uri(name, value, *_SCHEMES)


_OF_UPSTREAM: Final = (ParameterKey("uri", each(_is_upstream_uri), is_mandatory=True), *_SHARED)
_OF_MEMBER: Final = (ParameterKey("upstream", is_text, is_mandatory=True), *_SHARED)


@dataclass(frozen=True, slots=True)
class Upstream:
    """A broker from which a federated exchange or queue gets messages.

    ``exchange`` and ``queue`` are empty for the name of the federated one. ``expires_ms`` and ``ttl_ms`` are ``None``
    for no limit.
    """

    name: str
    vhost: str
    uris: tuple[BrokerUri, ...]
    exchange: str
    queue: str
    consumer_tag: str
    prefetch: int
    reconnect_delay_s: float
    max_hops: int
    expires_ms: int | None
    ttl_ms: int | None
    trusts_user_id: bool
    ack_mode: ShovelAckMode
    queue_type: str
    cleans_up: bool


def require_valid_upstream(record: ParameterRecord) -> None:
    """Validate an upstream. :raises PreconditionFailed: with RabbitMQ's texts."""
    require_none(faults_of(record.name, record.value, _OF_UPSTREAM))


def require_valid_upstream_set(record: ParameterRecord) -> None:
    """Validate a set of upstreams. :raises PreconditionFailed: with RabbitMQ's texts."""
    members = record.value
    if not isinstance(members, list):
        require_none([f"{record.name} not a list {as_erlang(members)}"])
        return
    require_none([fault for member in members for fault in faults_of(record.name, member, _OF_MEMBER)])


def upstream_of(record: ParameterRecord, changes: Mapping[str, Value]) -> Upstream:
    """Return the upstream of a valid parameter; ``changes`` of a set replace its keys."""
    assert isinstance(record.value, dict)
    value = record.value | {key: item for key, item in changes.items() if key != "upstream"}

    def number(key: str, default: int) -> int:
        item = value.get(key, default)
        return item if isinstance(item, int) else default

    def limit(key: str) -> int | None:
        return number(key, 0) if key in value else None

    def text(key: str, default: str = "") -> str:
        return str(value.get(key, default))

    delay = value.get("reconnect-delay", 5)
    return Upstream(
        name=record.name,
        vhost=record.vhost,
        uris=tuple(parse_uri(uri, *_SCHEMES) for uri in uris_of(value, "uri")),
        exchange=text("exchange"),
        queue=text("queue"),
        consumer_tag=text("consumer-tag", f"federation-link-{record.name}"),
        prefetch=min(number("prefetch-count", 1000), 65_535),
        reconnect_delay_s=float(delay) if isinstance(delay, int | float) else 5.0,
        max_hops=number("max-hops", 1),
        expires_ms=limit("expires"),
        ttl_ms=limit("message-ttl"),
        trusts_user_id=value.get("trust-user-id") is True,
        ack_mode=ShovelAckMode(text("ack-mode", "on-confirm")),
        queue_type=text("queue-type"),
        cleans_up=text("resource-cleanup-mode", "default") != "never",
    )


def upstreams_of(
    definition: Mapping[str, Value],
    vhost: str,
    parameters: Mapping[tuple[Value, ...], ParameterRecord],
    matches: Callable[[str, str], bool],
) -> Iterator[Upstream]:
    """Yield the upstreams that a policy names, of those that exist; ``matches`` applies a pattern to a name."""
    chosen: Mapping[str, Mapping[str, Value]]
    if UPSTREAM in definition:
        chosen = {str(definition[UPSTREAM]): {}}
    elif UPSTREAM_SET in definition:
        chosen = _members(str(definition[UPSTREAM_SET]), vhost, parameters)
    elif UPSTREAM_PATTERN in definition:
        pattern = str(definition[UPSTREAM_PATTERN])
        chosen = {name: {} for name in _names(vhost, parameters) if matches(pattern, name)}
    else:
        return
    for name, changes in chosen.items():
        record = parameters.get((vhost, UPSTREAM, name))
        if record is not None:
            yield upstream_of(record, changes)


def _members(
    name: str, vhost: str, parameters: Mapping[tuple[Value, ...], ParameterRecord]
) -> dict[str, Mapping[str, Value]]:
    """Return the members of a set by name, with the keys that the set changes."""
    record = parameters.get((vhost, UPSTREAM_SET, name))
    if record is None:
        return {each_name: {} for each_name in _names(vhost, parameters)} if name == ALL else {}
    members = record.value if isinstance(record.value, list) else []
    return {str(member["upstream"]): member for member in members if isinstance(member, dict)}


def _names(vhost: str, parameters: Mapping[tuple[Value, ...], ParameterRecord]) -> list[str]:
    return [each.name for each in parameters.values() if (each.vhost, each.component) == (vhost, UPSTREAM)]
