"""Mosquitto's bridges as parameters define them: ``PATTERN [out|in|both [QOS [LOCAL-PREFIX REMOTE-PREFIX]]]``."""

from collections.abc import Sequence
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
    require_none,
    uris_of,
)
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.kernel.messages.message import Value

COMPONENT: Final = "mqtt-bridge"

_DIRECTIONS: Final = ("out", "in", "both")

_PREFETCH: Final = 100


@dataclass(frozen=True, slots=True)
class BridgeRule:
    """One ``topic`` line of Mosquitto: which topics go in which direction, and how their names change."""

    pattern: str
    direction: str
    qos: int
    local_prefix: str
    remote_prefix: str

    @property
    def comes_in(self) -> bool:
        """Whether messages come from the other broker."""
        return self.direction != "out"

    @property
    def goes_out(self) -> bool:
        """Whether messages go to the other broker."""
        return self.direction != "in"

    @property
    def local_filter(self) -> str:
        """The filter of topics here."""
        return self.local_prefix + self.pattern

    @property
    def remote_filter(self) -> str:
        """The filter of topics at the other broker."""
        return self.remote_prefix + self.pattern

    def local_topic(self, remote: str) -> str:
        """Return the topic here of one at the other broker."""
        return self.local_prefix + remote.removeprefix(self.remote_prefix)

    def remote_topic(self, local: str) -> str:
        """Return the topic at the other broker of one here."""
        return self.remote_prefix + local.removeprefix(self.local_prefix)


@dataclass(frozen=True, slots=True)
class BridgeDefinition:
    """A bridge to another MQTT broker."""

    vhost: str
    name: str
    uris: tuple[BrokerUri, ...]
    rules: tuple[BridgeRule, ...]
    client_id: str
    prefetch: int
    reconnect_delay_s: float


def parse_rule(line: str) -> BridgeRule:
    """Return the rule of a line. :raises ValueError: with the reason."""
    words = ["" if word == '""' else word for word in line.split()]
    if not 1 <= len(words) <= 5 or len(words) == 4:
        raise ValueError("expected PATTERN [out|in|both [QOS [LOCAL-PREFIX REMOTE-PREFIX]]]")
    pattern, direction, qos, local, remote = (*words, *("", "out", "0", "", "")[len(words) :])
    if direction not in _DIRECTIONS:
        raise ValueError(f"'{direction}' is not a direction: out, in or both")
    if qos not in ("0", "1", "2"):
        raise ValueError(f"'{qos}' is not a QoS: 0, 1 or 2")
    if {"+", "#"} & set(local + remote):
        raise ValueError("a prefix has no wildcards")
    levels = pattern.split("/")
    if "#" in levels[:-1] or any(len(level) > 1 and ("+" in level or "#" in level) for level in levels):
        raise ValueError(f"'{pattern}' is not a topic filter")
    if not (pattern and pattern + local and pattern + remote):
        raise ValueError("the pattern is empty")
    return BridgeRule(pattern, direction, int(qos), local, remote)


def matches(filter: str, topic: str) -> bool:
    """Return whether a topic filter matches a topic."""
    wanted, levels = filter.split("/"), topic.split("/")
    for number, level in enumerate(wanted):
        if level == "#":
            return True
        if number >= len(levels) or level not in ("+", levels[number]):
            return False
    return len(wanted) == len(levels)


def rule_for(rules: Sequence[BridgeRule], topic: str, *, is_out: bool) -> BridgeRule | None:
    """Return the first rule of a direction that matches a topic, which is one here for ``out``."""
    for rule in rules:
        if is_out and rule.goes_out and matches(rule.local_filter, topic):
            return rule
        if not is_out and rule.comes_in and matches(rule.remote_filter, topic):
            return rule
    return None


def _is_address(name: str, value: Value) -> str:
    return is_uri(name, value, "mqtt", "mqtts")


def _is_rule(name: str, value: Value) -> str:
    if not isinstance(value, str):
        return is_text(name, value)
    try:
        parse_rule(value)
    except ValueError as fault:
        return f"{name} '{value}': {fault}"
    return ""


_KEYS: Final = (
    ParameterKey("address", each(_is_address), is_mandatory=True),
    ParameterKey("topics", each(_is_rule), is_mandatory=True),
    ParameterKey("client-id", is_text),
    ParameterKey("prefetch-count", is_count),
    ParameterKey("reconnect-delay", is_number),
)


def require_valid_bridge(record: ParameterRecord) -> None:
    """Validate a bridge. :raises PreconditionFailed: with all errors."""
    bridge_of(record)


def bridge_of(record: ParameterRecord) -> BridgeDefinition:
    """Return the bridge that a parameter defines. :raises PreconditionFailed: with all errors."""
    value = record.value
    require_none(faults_of(record.name, value, _KEYS))
    if not isinstance(value, dict):
        raise PreconditionFailed(f"{record.name} is not an object")
    delay, prefetch = value.get("reconnect-delay", 5), value.get("prefetch-count", _PREFETCH)
    return BridgeDefinition(
        vhost=record.vhost,
        name=record.name,
        uris=tuple(parse_uri(uri, "mqtt", "mqtts") for uri in uris_of(value, "address")),
        rules=tuple(map(parse_rule, uris_of(value, "topics"))),
        client_id=str(value.get("client-id", f"mqtt-bridge-{record.vhost}-{record.name}")),
        prefetch=prefetch if isinstance(prefetch, int) else _PREFETCH,
        reconnect_delay_s=float(delay) if isinstance(delay, int | float) else 5.0,
    )
