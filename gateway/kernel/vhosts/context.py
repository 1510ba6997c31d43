"""Dependencies that the virtual hosts of a node share, and those that the parts of one virtual host share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.kernel.acting import ActingUser
    from gateway.kernel.archives.archives import ArchiveContext
    from gateway.kernel.archives.trace_events import TraceEvents
    from gateway.kernel.backlog.memory_budget import MemoryBudget
    from gateway.kernel.clock import Clock
    from gateway.kernel.events import Events
    from gateway.kernel.faults import Faults
    from gateway.kernel.features.deduplication_caches import DeduplicationCaches
    from gateway.kernel.features.keeping import Keeping
    from gateway.kernel.features.offered_features import OfferedFeatures
    from gateway.kernel.features.policy_applier import PolicyApplier
    from gateway.kernel.interception.interception import Interception
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.journal.records.topology import VhostRecord
    from gateway.kernel.patterns import Compile
    from gateway.kernel.routing.bindings import Bindings
    from gateway.kernel.routing.router import Router
    from gateway.kernel.settings.user_counters import UserTallies
    from gateway.kernel.vhosts.queue_rules import QueueRules


@dataclass(frozen=True, slots=True)
class NodeContext:
    """The resources that all virtual hosts of a node share. ``reserve`` is the memory budget of their long queues."""

    journal: "Journal"
    clock: "Clock"
    events: "Events"
    next_queue_id: Callable[[], int]
    queue_rules: "QueueRules"
    reserve: "MemoryBudget"
    archive_context: "ArchiveContext"
    faults: "Faults"
    users: "UserTallies"
    compile_pattern: "Compile"


@dataclass(slots=True)
class VhostContext:
    """Dependencies of the exchanges and the queues of one virtual host. ``record`` is replaced when it is updated."""

    record: "VhostRecord"
    journal: "Journal"
    events: "Events"
    router: "Router"
    bindings: "Bindings"
    policy_applier: "PolicyApplier"
    next_queue_id: Callable[[], int]
    faults: "Faults"
    deduplication_caches: "DeduplicationCaches"
    keeping: "Keeping"
    trace_events: "TraceEvents"
    users: "UserTallies"
    interception: "Interception"
    queue_features: "OfferedFeatures"

    @property
    def vhost_name(self) -> str:
        """The name of the virtual host."""
        return self.record.name

    @property
    def acting(self) -> "ActingUser":
        """The user whose request is executed."""
        return self.events.acting
