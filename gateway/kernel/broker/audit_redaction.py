"""Rules that replace parts of an entry of the audit record before it is recorded."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from gateway.kernel.messages.json_path import JsonPath

#: The member of an entry's details that a client chooses.
_REQUEST: Final = "request"


@dataclass(frozen=True, slots=True)
class AuditRedaction:
    """A rule: in entries of an ``action``, which may end in ``*``, the part at a path is replaced.

    The path begins at the state before, at the state after, and at the request in the details.
    """

    action: str
    path: JsonPath

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the rule of the text ``ACTION PATH``, which the settings have checked."""
        action, _, path = text.partition(" ")
        return cls(action, JsonPath.parse(path))

    def applies_to(self, action: str) -> bool:
        """Return whether entries of an action are redacted."""
        return action.startswith(self.action[:-1]) if self.action.endswith("*") else action == self.action


def redacted_state(rules: Iterable[AuditRedaction], state: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return a state with the parts of all rules replaced; a rule for the whole of it leaves no member."""
    if state is None:
        return None
    found: Any = dict(state)
    for rule in rules:
        found = rule.path.redact(found)
    return found if isinstance(found, dict) else {"redacted": True}


def redacted_details(rules: Iterable[AuditRedaction], details: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return details with the parts of the request replaced."""
    found = dict(details or {})
    if _REQUEST in found:
        for rule in rules:
            found[_REQUEST] = rule.path.redact(found[_REQUEST])
    return found
