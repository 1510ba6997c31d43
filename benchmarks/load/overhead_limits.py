"""Limits on the cost of queue features over a plain queue: tables of queue kinds and workloads."""

from dataclasses import dataclass, replace
from typing import Final

from benchmarks.load.workloads import BULK, TRANSIENT, Measure, QueueKind, Workload


@dataclass(frozen=True, slots=True)
class OverheadLimit:
    """A kind of queue, and the maximum ratio of its broker CPU per message to a plain queue's."""

    kind: QueueKind
    at_most: float

    def of(self, workload: Workload) -> Workload:
        """Return the workload over a queue of this kind."""
        return replace(workload, name=f"{workload.name}, {self.kind.name}", queue=self.kind)


#: Limits that are checked for each message and never reached.
LIMITED: Final = QueueKind(
    "TTL + max-length + DLX",
    (
        ("x-message-ttl", 3_600_000),
        ("x-max-length", 10_000_000),
        ("x-dead-letter-exchange", ""),
        ("x-dead-letter-routing-key", "dead"),
    ),
)
PRIORITIES: Final = QueueKind("10 priorities", (("x-max-priority", 10),))

OVERHEAD_LIMITS: Final = (OverheadLimit(LIMITED, 1.3), OverheadLimit(PRIORITIES, 1.5))

#: With the first window all messages of a round fit into memory; with the second almost none do.
SHORT, LONG = 2_000, 20_000


def _over_a_queue(name: str, window: int, measure: Measure, *, persistent: bool) -> Workload:
    """Return a workload with messages of all ten priorities in turn, for any kind of queue."""
    return Workload(
        name, 100, window, 0.0, BULK, persistent=persistent, measure=measure, priorities=tuple(range(1, 11))
    )


#: A message that finds a consumer never waits, so its queue's work on waiting messages costs it nothing: both cases
#: are measured.
OVER_QUEUES: Final = (
    _over_a_queue("queue: consumed at once, transient", TRANSIENT, Measure.STREAM, persistent=False),
    _over_a_queue("queue: consumed at once, persistent", 5_000, Measure.STREAM, persistent=True),
    _over_a_queue("queue: 2,000 wait, transient", SHORT, Measure.WAITING, persistent=False),
    _over_a_queue("queue: 2,000 wait, persistent", SHORT, Measure.WAITING, persistent=True),
    _over_a_queue("queue: 20,000 wait, persistent", LONG, Measure.WAITING, persistent=True),
)
