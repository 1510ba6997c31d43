"""A shovel as its parameter defines it, validated with RabbitMQ's error texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.bridges.broker_uri import BrokerUri, is_uri, parse_uri
from gateway.bridges.parameter_checks import (
    Check,
    ParameterKey,
    each,
    faults_of,
    is_count,
    is_number,
    is_table,
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

COMPONENT: Final = "shovel"

AMQP: Final = "amqp091"
MQTT: Final = "mqtt"
STOMP: Final = "stomp"

#: Protocol to the schemes of its URIs.
PROTOCOLS: Final[Mapping[str, tuple[str, ...]]] = {
    AMQP: ("amqp", "amqps"),
    MQTT: ("mqtt", "mqtts"),
    STOMP: ("stomp", "stomps"),
}

#: Defaults, as in RabbitMQ.
_PREFETCH: Final = 1000
_RECONNECT_DELAY_S: Final = 5

NEVER: Final = "never"
QUEUE_LENGTH: Final = "queue-length"


def _is_delete_after(name: str, value: Value) -> str:
    if value in (NEVER, QUEUE_LENGTH) or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return ""
    return f'{name} should be number, "never" or "queue-length", actually was {as_erlang(value)}'


def _uri(protocol: str) -> Check:
    def check(name: str, value: Value) -> str:
        return is_uri(name, value, *PROTOCOLS[protocol])

    return each(check)


#: Message properties that ``dest-publish-properties`` may set, and their checks.
PROPERTIES: Final[Mapping[str, Check]] = {
    **dict.fromkeys(
        (
            *("content_type", "content_encoding", "correlation_id", "reply_to", "expiration", "message_id", "type"),
            *("user_id", "app_id", "cluster_id"),
        ),
        is_text,
    ),
    **dict.fromkeys(("delivery_mode", "priority", "timestamp"), is_number),
    "headers": is_table,
}


def _are_properties(name: str, value: Value) -> str:
    if not isinstance(value, dict):
        return is_table(name, value)
    if unknown := [key for key in value if key not in PROPERTIES]:
        return f"{name} has the unknown property '{unknown[0]}', expected one of {', '.join(sorted(PROPERTIES))}"
    return next((fault for fault in (PROPERTIES[key](key, item) for key, item in value.items()) if fault), "")


def _is_qos(name: str, value: Value) -> str:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 2:
        return ""
    return f"{name} should be 0, 1 or 2, actually was {as_erlang(value)}"


def _is_filter(name: str, value: Value) -> str:
    if not isinstance(value, str):
        return is_text(name, value)
    levels = value.split("/")
    is_valid = value and "\0" not in value and "#" not in levels[:-1]
    if is_valid and not any(len(level) > 1 and ("+" in level or "#" in level) for level in levels):
        return ""
    return f"{name} should be a topic filter, actually was {as_erlang(value)}"


def _is_topic(name: str, value: Value) -> str:
    if isinstance(value, str) and not {"+", "#", "\0"} & set(value):
        return ""
    return is_text(name, value) or f"{name} should be a topic without wildcards, actually was {as_erlang(value)}"


_COMMON: Final = (
    ParameterKey("reconnect-delay", is_number),
    ParameterKey("ack-mode", one_of("no-ack", "on-publish", "on-confirm")),
    ParameterKey("src-protocol", one_of(*PROTOCOLS)),
    ParameterKey("dest-protocol", one_of(*PROTOCOLS)),
    ParameterKey("src-prefetch-count", is_count),
    ParameterKey("prefetch-count", is_count),
    ParameterKey("src-delete-after", _is_delete_after),
    ParameterKey("delete-after", _is_delete_after),
    ParameterKey("add-forward-headers", is_truth),
    ParameterKey("dest-add-forward-headers", is_truth),
    ParameterKey("add-timestamp-header", is_truth),
    ParameterKey("dest-add-timestamp-header", is_truth),
    ParameterKey("publish-properties", _are_properties),
    ParameterKey("dest-publish-properties", _are_properties),
)

_SOURCE_KEYS: Final[Mapping[str, Sequence[ParameterKey]]] = {
    AMQP: (
        ParameterKey("src-uri", _uri(AMQP), is_mandatory=True),
        ParameterKey("src-queue", is_text),
        ParameterKey("src-exchange", is_text),
        ParameterKey("src-exchange-key", is_text),
        ParameterKey("src-queue-args", is_table),
        ParameterKey("src-consumer-args", is_table),
        ParameterKey("src-predeclared", is_truth),
    ),
    MQTT: (
        ParameterKey("src-uri", _uri(MQTT), is_mandatory=True),
        ParameterKey("src-topic", each(_is_filter), is_mandatory=True),
        ParameterKey("src-qos", _is_qos),
        ParameterKey("src-client-id", is_text),
    ),
    STOMP: (
        ParameterKey("src-uri", _uri(STOMP), is_mandatory=True),
        ParameterKey("src-destination", is_text, is_mandatory=True),
    ),
}

_DESTINATION_KEYS: Final[Mapping[str, Sequence[ParameterKey]]] = {
    AMQP: (
        ParameterKey("dest-uri", _uri(AMQP), is_mandatory=True),
        ParameterKey("dest-queue", is_text),
        ParameterKey("dest-exchange", is_text),
        ParameterKey("dest-exchange-key", is_text),
        ParameterKey("dest-queue-args", is_table),
        ParameterKey("dest-predeclared", is_truth),
    ),
    MQTT: (
        ParameterKey("dest-uri", _uri(MQTT), is_mandatory=True),
        ParameterKey("dest-topic", _is_topic),
        ParameterKey("dest-topic-prefix", _is_topic),
        ParameterKey("dest-qos", _is_qos),
        ParameterKey("dest-retain", is_truth),
        ParameterKey("dest-client-id", is_text),
    ),
    STOMP: (
        ParameterKey("dest-uri", _uri(STOMP), is_mandatory=True),
        ParameterKey("dest-destination", is_text, is_mandatory=True),
    ),
}


@dataclass(frozen=True, slots=True)
class ShovelDefinition:
    """A shovel. Names are empty if the parameter does not set them, except ``*_key`` of ``None``: the message's own.

    ``value`` is the parameter's value.
    """

    vhost: str
    name: str
    value: Mapping[str, Value]
    src_protocol: str
    dest_protocol: str
    src_uris: tuple[BrokerUri, ...]
    dest_uris: tuple[BrokerUri, ...]
    ack_mode: ShovelAckMode
    prefetch: int
    reconnect_delay_s: float
    delete_after: Value
    adds_headers: bool
    adds_timestamp: bool
    properties: Mapping[str, Value] = field(default_factory=dict)

    def text(self, key: str) -> str:
        """Return the value of a key that is a string; empty if it is not set."""
        return str(self.value.get(key, ""))

    def number(self, key: str, default: int) -> int:
        """Return the value of a key that is an integer."""
        value = self.value.get(key, default)
        return value if isinstance(value, int) else default

    def table(self, key: str) -> Mapping[str, Value]:
        """Return the value of a key that is an object; empty if it is not set."""
        value = self.value.get(key, {})
        return value if isinstance(value, dict) else {}


def require_valid_shovel(record: ParameterRecord) -> None:
    """Validate a shovel's parameter. :raises PreconditionFailed: with RabbitMQ's texts."""
    shovel_of(record)


def shovel_of(record: ParameterRecord) -> ShovelDefinition:
    """Return the shovel that a parameter defines. :raises PreconditionFailed: with RabbitMQ's texts."""
    value = record.value
    if not isinstance(value, dict):
        require_none(faults_of(record.name, value, ()))
        raise AssertionError
    protocols = {end: str(value.get(f"{end}-protocol", AMQP)) for end in ("src", "dest")}
    source, destination = protocols["src"], protocols["dest"]
    keys = [*_COMMON, *_SOURCE_KEYS.get(source, ()), *_DESTINATION_KEYS.get(destination, ())]
    conflicts = _CONFLICTS_OF_SOURCE.get(source, _no_conflicts)(value)
    conflicts += _CONFLICTS_OF_DESTINATION.get(destination, _no_conflicts)(value)
    require_none([*conflicts, *_common_conflicts(value), *faults_of(record.name, value, keys)])
    return ShovelDefinition(
        vhost=record.vhost,
        name=record.name,
        value=value,
        src_protocol=source,
        dest_protocol=destination,
        src_uris=tuple(parse_uri(uri, *PROTOCOLS[source]) for uri in uris_of(value, "src-uri")),
        dest_uris=tuple(parse_uri(uri, *PROTOCOLS[destination]) for uri in uris_of(value, "dest-uri")),
        ack_mode=ShovelAckMode(value.get("ack-mode", "on-confirm")),
        prefetch=_integer(_first(value, ("src-prefetch-count", "prefetch-count"), _PREFETCH)),
        reconnect_delay_s=_number(value.get("reconnect-delay", _RECONNECT_DELAY_S)),
        delete_after=_first(value, ("src-delete-after", "delete-after"), NEVER),
        adds_headers=bool(_first(value, ("dest-add-forward-headers", "add-forward-headers"), False)),
        adds_timestamp=bool(_first(value, ("dest-add-timestamp-header", "add-timestamp-header"), False)),
        properties=_table(_first(value, ("dest-publish-properties", "publish-properties"), {})),
    )


def _no_conflicts(value: Mapping[str, Value]) -> list[str]:
    return []


def _common_conflicts(value: Mapping[str, Value]) -> list[str]:
    delete_after = _first(value, ("src-delete-after", "delete-after"), NEVER)
    if isinstance(delete_after, int) and value.get("ack-mode") == "no-ack":
        return ["Cannot specify 'no-ack' and numerical 'delete-after'"]
    return []


def _amqp_source_conflicts(value: Mapping[str, Value]) -> list[str]:
    count = ("src-exchange" in value) + ("src-queue" in value)
    return [
        *(["Must specify 'src-exchange' or 'src-queue'"] if count == 0 else []),
        *(["Cannot specify 'src-exchange' and 'src-queue'"] if count == 2 else []),
    ]


def _amqp_destination_conflicts(value: Mapping[str, Value]) -> list[str]:
    both = "dest-exchange" in value and "dest-queue" in value
    return ["Cannot specify 'dest-exchange' and 'dest-queue'"] if both else []


def _no_queue_conflicts(value: Mapping[str, Value]) -> list[str]:
    after = _first(value, ("src-delete-after", "delete-after"), NEVER)
    return ["Cannot specify 'queue-length' for a source without a queue"] if after == QUEUE_LENGTH else []


def _mqtt_destination_conflicts(value: Mapping[str, Value]) -> list[str]:
    if value.get("ack-mode", "on-confirm") == "on-confirm" and value.get("dest-qos", 1) == 0:
        return ["Cannot specify 'on-confirm' and 'dest-qos' 0, which is not confirmed"]
    return []


_CONFLICTS_OF_SOURCE: Final = {AMQP: _amqp_source_conflicts, MQTT: _no_queue_conflicts, STOMP: _no_queue_conflicts}
_CONFLICTS_OF_DESTINATION: Final = {AMQP: _amqp_destination_conflicts, MQTT: _mqtt_destination_conflicts}


def _first(value: Mapping[str, Value], keys: Sequence[str], default: Value) -> Value:
    """Return the value of the first of these keys that is set: newer names stand before older ones."""
    return next((value[key] for key in keys if key in value), default)


def _integer(value: Value) -> int:
    assert isinstance(value, int)
    return value


def _number(value: Value) -> float:
    assert isinstance(value, int | float)
    return float(value)


def _table(value: Value) -> Mapping[str, Value]:
    assert isinstance(value, dict)
    return value
