"""One entry of exported definitions in the trial of an import."""

from dataclasses import dataclass

from gateway.cli.ctl.values import JsonObject, text

#: The virtual host of entries without one: those of an export of one virtual host.
DEFAULT_VHOST = "/"


@dataclass(frozen=True, slots=True)
class TrialEntry:
    """An entry with its ``fields``, and why an import refuses it, if it does.

    ``number`` counts from 0 within the category, such as ``queues``.
    """

    category: str
    number: int
    fields: JsonObject
    refusal: str | None

    @property
    def vhost(self) -> str:
        """The virtual host of the entry."""
        return text(self.fields, "vhost") or DEFAULT_VHOST

    @property
    def name(self) -> str:
        """The name of the entry, and of its virtual host; without a name its place, such as ``users[2]``."""
        name = text(self.fields, "name") or text(self.fields, "user") or self._ends()
        vhost = text(self.fields, "vhost")
        if not name:
            name = f"{self.category}[{self.number}]"
        return f"{name} in {vhost}" if vhost else name

    def _ends(self) -> str:
        source, destination = text(self.fields, "source"), text(self.fields, "destination")
        return f"{source} to {destination}" if source or destination else ""
