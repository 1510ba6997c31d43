"""The part that the interceptors for JSON Schema, Avro and Protobuf share: their rules, refusals and quarantine."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from pydantic import Field

from gateway.api import (
    ConfigurationError,
    Decision,
    Diversion,
    Interceptor,
    Message,
    MetricSource,
    Origin,
    PluginMetric,
    PluginSettings,
    Refusal,
    RefusalCause,
    Value,
)

#: The header with the reason, of a message in quarantine.
REASON: Final = "x-quarantine-reason"
EXCHANGE: Final = "x-quarantine-exchange"
ROUTING_KEY: Final = "x-quarantine-routing-key"

_LONGEST: Final = 180

#: The most samples of a metric.
_MOST_SAMPLES: Final = 1000

Complaint = Callable[[bytes], str]
"""Returns what is wrong with a body, ``""`` if nothing is."""


class ValidationRule(PluginSettings):
    """Selects the messages that are checked, and where invalid ones go."""

    exchange: str
    """The exchange that the messages are published to. "" is the default exchange."""

    routing_key: str | None = None
    """Only messages with this key; none for all."""

    quarantine: str = ""
    """The queue that gets invalid messages; empty to refuse them. It must exist."""

    max_body_bytes: int = Field(default=16_384, ge=1, le=1_048_576)
    """The size of the largest body; larger ones are invalid. The check of a large body delays all clients."""


Rule = TypeVar("Rule", bound=ValidationRule)


class Validation(Interceptor, MetricSource):
    """Refuses messages with an invalid body, or diverts them to the quarantine queue of their rule."""

    def __init__(self, rules: Sequence[tuple[ValidationRule, Complaint]]) -> None:
        self.exchanges = {rule.exchange for rule, _ in rules}
        self._rules = rules
        self._checked = Counter[str]()
        self._invalid = Counter[tuple[str, str]]()

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        """Return the message, a refusal with ``RefusalCause.PAYLOAD``, or the diversion to the quarantine queue."""
        for rule, complaint in self._rules:
            if message.exchange == rule.exchange and rule.routing_key in (None, message.routing_key):
                self._checked[rule.exchange] += 1
                reason = _fault(message.body, rule, complaint)
                if not reason:
                    return message
                self._invalid[rule.exchange, rule.quarantine] += 1
                return _invalid(message, rule, reason)
        return message

    def metrics(self) -> Sequence[PluginMetric]:
        """Return the numbers of checked and of invalid messages; ``quarantine`` is the queue, empty if refused."""
        checked = [({"exchange": exchange}, count) for exchange, count in self._checked.items()]
        invalid = [({"exchange": exchange, "quarantine": queue}, n) for (exchange, queue), n in self._invalid.items()]
        return [
            PluginMetric("checked_total", "counter", "Messages whose body was checked", checked[:_MOST_SAMPLES]),
            PluginMetric("invalid_total", "counter", "Messages with an invalid body", invalid[:_MOST_SAMPLES]),
        ]


class Validations:
    """The interceptors of one plugin, by virtual host, for the hooks that are called after that of interceptors."""

    def __init__(self) -> None:
        self._by_vhost: WeakValueDictionary[str, Validation] = WeakValueDictionary()

    def interceptors(
        self, vhost: str, rules: Sequence[Rule], complaint_of: Callable[[Rule], Complaint]
    ) -> Sequence[Interceptor]:
        """Return the interceptor for the rules of the plugin in a virtual host.

        :raises ConfigurationError: if there is no rule. One about a schema gets the number of its rule.
        """
        if not rules:
            raise ConfigurationError("'rules' must have at least one rule")
        checked: list[tuple[ValidationRule, Complaint]] = []
        for number, rule in enumerate(rules, 1):
            try:
                checked.append((rule, complaint_of(rule)))
            except ConfigurationError as error:
                raise ConfigurationError(f"rule {number}: {error}") from None
        found = self._by_vhost[vhost] = Validation(checked)
        return [found]

    def metric_sources(self, vhost: str) -> Sequence[MetricSource]:
        """Return the source of the metrics of the interceptor that was created last."""
        return [self._by_vhost[vhost]]


def missing(library: str, extra: str) -> ConfigurationError:
    """Return the error for a library that an extra of the package installs."""
    return ConfigurationError(f"the library {library} is not installed: pip install 'gateway-broker[{extra}]'")


def file_content(path: Path, key: str) -> bytes:
    """Return the content of the file that a setting names. :raises ConfigurationError: if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"'{key}' {str(path)!r} cannot be read: {error.strerror}") from None


def _fault(body: bytes, rule: ValidationRule, complaint: Complaint) -> str:
    """Return the fault in a body, ``""`` if it is valid."""
    if len(body) > rule.max_body_bytes:
        return f"it has {len(body)} bytes, at most {rule.max_body_bytes} are allowed"
    return complaint(body)


def _invalid(message: Message, rule: ValidationRule, reason: str) -> Decision:
    reason = _cut(f"the body is invalid: {reason}")
    if not rule.quarantine:
        return Refusal(reason, RefusalCause.PAYLOAD)
    headers: dict[str, Value] = {REASON: reason, EXCHANGE: message.exchange, ROUTING_KEY: message.routing_key}
    return Diversion("", rule.quarantine, message.edited(headers))


def _cut(text: str) -> str:
    """Return the text, cut to the size of a reason, in which many protocols allow 255 bytes.

    It may quote the body: characters that MQTT and STOMP forbid in a reason, such as NUL, are replaced.
    """
    text = "".join([character if character.isprintable() else "?" for character in text[: _LONGEST + 1]])
    return text if len(text.encode()) <= _LONGEST else text.encode()[:_LONGEST].decode(errors="ignore") + "..."
