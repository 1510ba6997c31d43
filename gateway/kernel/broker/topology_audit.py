"""Audit entries for the topology that clients of the protocols change, if a setting asks for them."""

from typing import Final

from gateway.kernel.acting import ActingUser
from gateway.kernel.broker.audit_log import AuditLog
from gateway.kernel.events import Event
from gateway.kernel.messages.message import Value

_EVENTS: Final = frozenset(
    {
        "exchange.created",
        "exchange.deleted",
        "queue.created",
        "queue.deleted",
        "queue.purged",
        "binding.created",
        "binding.deleted",
    }
)

#: The surface whose clients change the queues and bindings of their sessions only.
_SESSIONS: Final = "MQTT"


class TopologyAudit:
    """Records the topology events that requests of clients cause: a listener of the node's events.

    Work of a request that takes several turns is recorded, too. Events of the broker's own work have no client.
    """

    def __init__(self, log: AuditLog, acting: ActingUser) -> None:
        self._log = log
        self._acting = acting

    def __call__(self, event: Event) -> None:
        """Record an event; those without a client are ignored."""
        rules = self._log.rules
        if event.name not in _EVENTS or not (rules.client_topology or rules.client_sessions):
            return
        actor = self._acting.client
        if actor is None or not (rules.client_sessions if actor.surface == _SESSIONS else rules.client_topology):
            return
        state: dict[str, Value] = {}
        for name, value in event.details.items():
            if name != "user":
                state[name] = value if isinstance(value, dict | bool | int) else str(value)
        is_created = event.name.endswith(".created")
        details = state if event.name == "queue.purged" else None
        after = state if is_created else None
        self._log.record(actor, event.name, event.vhost, event.subject, after=after, details=details)
