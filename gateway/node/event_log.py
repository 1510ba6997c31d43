"""Kernel events as log lines: warnings for operators, all others at debug level."""

from collections.abc import Callable
from typing import Any, Final

from gateway.kernel.events import Event
from gateway.kernel.faults import FAULT
from gateway.logs import StructuredLog
from gateway.logs.rate_limit import RateLimit

_log: Final = StructuredLog("node")

#: Events logged as warnings, besides all of the store's.
_WARNINGS: Final = frozenset(
    {
        "archive.failed",
        "archive.full",
        "binding.inert",
        "exchange.inert",
        "plugin.inert",
        "plugin.faulty",
        "plugin.switched_off",
        "queue.advice",
        "mqtt.topics_not_changed",
        "retained.refused",
        "kept.refused",
        "stream.encoding_failed",
        "will.refused",
    }
)

#: A repeated fault is logged once per this many seconds, with the number of repetitions in between.
_FAULT_INTERVAL_S: Final = 60.0


#: Changes of plugins by operators.
PLUGIN_CHANGES: Final = frozenset(
    {
        "exchange.revived",
        "plugin.disabled",
        "plugin.enabled",
        "plugin.reloaded",
        "plugin.rolled_back",
        "plugin.settings_changed",
    }
)

#: Changes of the running node by operators.
NODE_CHANGES: Final = frozenset(
    {
        "listeners.resumed",
        "listeners.suspended",
        "log.rotated",
        "node.drained",
        "node.revived",
        "node.stopping",
        "setting.changed",
        "setting.restored",
    }
)

#: Events logged at info level, which need no action.
_NOTES: Final = frozenset(
    {"store.compacting", "store.compaction_catches_up", "store.compacted", *PLUGIN_CHANGES, *NODE_CHANGES}
)

#: Kinds whose events are logged at debug level only. There are two of a session for each login.
_DETAILS: Final = frozenset({"session"})


class EventLog:
    """Writes events to the log. A repeated fault is logged once a minute."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._limit = RateLimit(1, _FAULT_INTERVAL_S, now_s)

    def wants(self, kind: str) -> bool:
        """Return whether events of a kind may be written, at the present level."""
        return kind not in _DETAILS or _log.is_debugging

    def __call__(self, event: Event) -> None:
        """Write one event."""
        if event.name == FAULT:
            self._write_fault(event)
            return
        is_warning = (
            event.name.startswith("store.") or event.name.endswith(".without_effect") or event.name in _WARNINGS
        )
        level: Callable[..., None] = _log.warning if is_warning else _log.debug
        if event.name in _NOTES:
            level = _log.info
        level(event.name, vhost=event.vhost, subject=event.subject, **event.details)

    def _write_fault(self, event: Event) -> None:
        details = event.details
        kind = (event.vhost, event.subject, details.get("kind"), details.get("plugin"), details.get("place"))
        left_out = self._limit.passes(kind)
        if left_out is not None:
            more = {"repeated": left_out} if left_out else {}
            fields: dict[str, Any] = {"vhost": event.vhost, "subject": event.subject, **details, **more}
            _log.error("fault contained", **fields)
