"""What the parts of one virtual host have in common: what it is said to be, and the ways out of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.kernel.bindings import Bindings
    from gateway.kernel.equipping import Equipment
    from gateway.kernel.events import Events
    from gateway.kernel.faults import Faults
    from gateway.kernel.journal import Journal
    from gateway.kernel.recollections import Recollections
    from gateway.kernel.records import VhostRecord
    from gateway.kernel.router import Router
    from gateway.kernel.user_tallies import UserTallies


@dataclass(slots=True)
class Commons:
    """Shared by the exchanges and the queues of one virtual host. ``record`` is replaced as the operator amends it."""

    record: "VhostRecord"
    journal: "Journal"
    events: "Events"
    router: "Router"
    bindings: "Bindings"
    equipment: "Equipment"
    next_queue_id: Callable[[], int]
    faults: "Faults"
    recollections: "Recollections"
    users: "UserTallies"

    @property
    def vhost_name(self) -> str:
        """The name of the virtual host."""
        return self.record.name
