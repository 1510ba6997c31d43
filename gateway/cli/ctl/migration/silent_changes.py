"""Entries of definitions that an import leaves out or changes without refusing them."""

from collections.abc import Container, Iterator
from typing import Final

from gateway.cli.ctl.migration.import_trial import ImportTrial
from gateway.cli.ctl.migration.trial_entry import TrialEntry
from gateway.cli.ctl.values import text
from gateway.kernel.names import PREDECLARED, RESERVED_PREFIX
from gateway.kernel.vhosts.queue_rules import QUEUE_TYPES

#: RabbitMQ's names of its queue type for subscriptions of QoS 0.
_QOS0: Final = ("mqtt_qos0", "rabbit_mqtt_qos0_queue")

_PREDECLARED: Final = frozenset(name for name, _, _ in PREDECLARED)


class SilentChanges:
    """Finds the accepted queues, exchanges and bindings of a trial that an import leaves out or changes."""

    def __init__(self, trial: ImportTrial) -> None:
        self._default_types = {text(each.fields, "name"): _default_type(each) for each in trial.entries("vhosts")}
        self._queues = frozenset(_imported(trial.entries("queues")))
        self._exchanges = frozenset(_imported(trial.entries("exchanges")))

    def of_queue(self, queue: TrialEntry) -> str | None:
        """Return what an import makes of a queue instead; ``None`` if it makes the same."""
        if text(queue.fields, "name").startswith(RESERVED_PREFIX):
            return "left out: the client of a queue with a reserved name declares it"
        kind = queue_type(queue)
        if kind in QUEUE_TYPES:
            return None
        becomes = f"becomes a queue of type {self._default_types.get(queue.vhost) or 'classic'}"
        if kind in _QOS0:
            return f"{becomes}; leave it out: each MQTT session makes a classic queue for its subscriptions of QoS 0"
        return f"{becomes}: there is no type {kind}"

    def of_exchange(self, exchange: TrialEntry) -> str | None:
        """Return why an import leaves out an exchange; ``None`` if it does not."""
        name = text(exchange.fields, "name")
        is_left_out = name.startswith(RESERVED_PREFIX) and name not in _PREDECLARED
        return "left out: its name is reserved" if is_left_out else None

    def missing_end(self, binding: TrialEntry) -> str | None:
        """Return the end of a binding that an import does not find, such as ``queue q in /``, or ``None``."""
        source, destination = text(binding.fields, "source"), text(binding.fields, "destination")
        if not source:
            return None  # those of the default exchange are implicit
        if source not in _PREDECLARED and (binding.vhost, source) not in self._exchanges:
            return f"exchange {source} in {binding.vhost}"
        kind = text(binding.fields, "destination_type") or "queue"
        known: Container[tuple[str, str]] = self._queues if kind == "queue" else self._exchanges
        is_known = (binding.vhost, destination) in known or (kind == "exchange" and destination in _PREDECLARED)
        return None if is_known else f"{kind} {destination} in {binding.vhost}"


def queue_type(queue: TrialEntry) -> str:
    """Return the type of a queue: that of its argument, else the one that the export names."""
    return text(queue.fields, "arguments", "x-queue-type") or text(queue.fields, "type") or "classic"


def _imported(entries: list[TrialEntry]) -> Iterator[tuple[str, str]]:
    """Yield the virtual hosts and names of the entries that an import makes."""
    for entry in entries:
        name = text(entry.fields, "name")
        if entry.refusal is None and not name.startswith(RESERVED_PREFIX):
            yield entry.vhost, name


def _default_type(vhost: TrialEntry) -> str:
    given = text(vhost.fields, "default_queue_type") or text(vhost.fields, "metadata", "default_queue_type")
    return given if given in QUEUE_TYPES else ""
