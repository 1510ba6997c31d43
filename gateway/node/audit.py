"""The rules of the audit record and the workbench, and audited changes that do not come over HTTP."""

from dataclasses import fields
from pathlib import Path
from typing import Final

from gateway.config import Settings
from gateway.config.live import differences, flat
from gateway.definitions import Definitions, entry_counts
from gateway.kernel.acting import Actor
from gateway.kernel.broker.audit_log import AuditLog, AuditRules
from gateway.kernel.broker.audit_redaction import AuditRedaction
from gateway.kernel.broker.broker import Broker
from gateway.kernel.events import Event
from gateway.kernel.messages.message import Value
from gateway.kernel.workbench.workbench import WorkbenchRules
from gateway.management.auditing.masking import masked

#: How often entries are compared with the age limit, in seconds.
PRUNING_INTERVAL_S: Final = 60.0

_SWITCHED_OFF: Final = "plugin.switched_off"


def audit_rules(settings: Settings) -> AuditRules:
    """Return the limits of the audit record."""
    audit = settings.audit  # its dump has sizes as text
    given = {field.name: getattr(audit, field.name) for field in fields(AuditRules)}
    return AuditRules(**{**given, "redact": tuple(map(AuditRedaction.parse, audit.redact))})


def workbench_rules(settings: Settings) -> WorkbenchRules:
    """Return the limits of the message workbench."""
    return WorkbenchRules(**{field.name: getattr(settings.workbench, field.name) for field in fields(WorkbenchRules)})


def record_definitions(log: AuditLog, definitions: Definitions, path: Path) -> None:
    """Record that the definitions of a file are applied at the start."""
    entries: dict[str, Value] = {**entry_counts(definitions)}
    log.record(Actor("", "", "definitions"), "definitions.imported", subject=str(path), details={"entries": entries})


def record_reload(log: AuditLog, old: Settings, new: Settings) -> None:
    """Record the settings that a reload by signal changed, without secrets; each value as text."""
    if keys := differences(old, new):
        before, after = (_texts(settings, keys) for settings in (old, new))
        log.record(Actor("", "", "configuration"), "settings.reloaded", before=before, after=after)


def _texts(settings: Settings, keys: list[str]) -> dict[str, Value]:
    values = dict(flat(settings.model_dump()))
    shown = masked({key: str(values.get(key, "")) for key in keys})
    return shown if isinstance(shown, dict) else {}


class PluginAudit:
    """Records plugins that the broker itself switches off; a listener of the node's events."""

    def __init__(self, broker: Broker) -> None:
        self._log = broker.audit

    def __call__(self, event: Event) -> None:
        """Record an event; others are ignored."""
        if event.name == _SWITCHED_OFF:
            reason = str(event.details.get("reason", ""))
            actor = Actor("", "", "plugin")
            self._log.record(actor, _SWITCHED_OFF, event.vhost, event.subject, details={"reason": reason})
