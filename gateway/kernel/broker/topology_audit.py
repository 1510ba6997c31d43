"""Audit entries for the exchanges, queues and bindings that clients declare and delete, if a setting asks for them."""

from collections.abc import Mapping
from typing import Final

from gateway.kernel.broker.audit_log import Actor, AuditLog
from gateway.kernel.events import Event
from gateway.kernel.messages.message import Value
from gateway.kernel.vhosts.virtual_host import VirtualHost

_EVENTS: Final = frozenset(
    {
        "exchange.created",
        "exchange.deleted",
        "queue.created",
        "queue.deleted",
        "binding.created",
        "binding.deleted",
    }
)

#: Only adapters of AMQP tell which client is acting.
_SURFACE: Final = "AMQP"


class TopologyAudit:
    """Records the topology events that requests of clients cause: a listener of the node's events.

    The request is that of ``VirtualHost.acting``. A deletion that takes several turns has none, and is not recorded.
    """

    def __init__(self, log: AuditLog, vhost_by_name: Mapping[str, VirtualHost]) -> None:
        self._log = log
        self._vhost_by_name = vhost_by_name

    def __call__(self, event: Event) -> None:
        """Record an event; those without a request are ignored."""
        if event.name not in _EVENTS or not self._log.rules.client_topology:
            return
        vhost = self._vhost_by_name.get(event.vhost)
        if vhost is None or (origin := vhost.acting) is None:
            return
        actor = Actor(origin.user, origin.connection.partition(" -> ")[0], _SURFACE)
        state: dict[str, Value] = {}
        for name, value in event.details.items():
            if name != "user":
                state[name] = value if isinstance(value, dict | bool | int) else str(value)
        is_created = event.name.endswith(".created")
        self._log.record(actor, event.name, event.vhost, event.subject, after=state if is_created else None)
