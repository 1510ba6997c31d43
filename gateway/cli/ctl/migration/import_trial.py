"""The trial of an import: exported definitions against a broker in memory with the built-in plugins."""

from typing import Final

from gateway.bridges.components import PARAMETER_CHECKS
from gateway.cli.ctl.migration.trial_entry import DEFAULT_VHOST, TrialEntry
from gateway.cli.ctl.values import Json, JsonObject, objects, part, text
from gateway.definitions import Definitions, checked, entry_checks
from gateway.kernel.errors import ConfigurationError
from gateway.testing import MemoryBroker

#: The origin of the definitions in errors, which are shown without it.
_SOURCE: Final = "trial"

#: Categories whose entries others belong to. A refused one stands in with its name alone, so that those are checked.
_OWNERS: Final = ("users", "vhosts")

_CATEGORIES: Final = tuple(name for name in Definitions.model_fields if not name.endswith("_version"))


class ImportTrial:
    """Checks each entry of exported definitions as an import checks it, without importing anything.

    ``exchange_types`` are those of the broker. ``components`` are those of runtime parameters that have an effect.
    """

    def __init__(self, definitions: Json) -> None:
        broker = MemoryBroker()
        broker.kernel.parameters.components.update(PARAMETER_CHECKS)
        self.exchange_types = frozenset(broker.vhost.exchange_types)
        self.components = frozenset({*broker.kernel.parameters.components, "vhost-limits"})
        self._entries = {category: objects(part(definitions, category)) for category in _CATEGORIES}
        self._reasons: dict[tuple[str, int], str] = {}
        readable: dict[str, Json] = {
            name: version for name in ("rabbit_version", "rabbitmq_version") if (version := text(definitions, name))
        }
        numbers: dict[str, list[int]] = {}
        for category in _CATEGORIES:
            readable[category] = self._readable(category, numbers.setdefault(category, []))
        for refused in entry_checks(checked(readable, _SOURCE), broker.kernel, DEFAULT_VHOST):
            if refused is not None:
                number = numbers[refused.category][refused.number]
                self._reasons.setdefault((refused.category, number), refused.reason)

    def entries(self, category: str) -> list[TrialEntry]:
        """Return the entries of a category such as ``queues``, each with the reason why an import refuses it."""
        reasons, entries = self._reasons, self._entries[category]
        return [
            TrialEntry(category, number, fields, reasons.get((category, number)))
            for number, fields in enumerate(entries)
        ]

    def _readable(self, category: str, numbers: list[int]) -> list[Json]:
        """Return the entries in the form of definitions, and add their numbers; keep the faults of others."""
        readable: list[Json] = []
        for number, entry in enumerate(self._entries[category]):
            fault = _fault_of_form(category, entry)
            if fault is not None:
                self._reasons[category, number] = fault
                if category not in _OWNERS or not text(entry, "name"):
                    continue
                entry = {"name": text(entry, "name")}
            readable.append(entry)
            numbers.append(number)
        return readable


def _fault_of_form(category: str, entry: JsonObject) -> str | None:
    try:
        checked({category: [entry]}, _SOURCE)
    except ConfigurationError as error:
        place = f"{_SOURCE}: {category}[0]"
        return "; ".join(line.removeprefix(place).lstrip(".: ") for line in str(error).splitlines())
    return None
