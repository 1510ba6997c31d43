"""What is measured over STOMP, as a table: one row a workload."""

from typing import Final

from benchmarks.load.workloads import BULK, FANOUT, STOMP, TRANSIENT, Shape, Workload

#: The factor owed: throughput per CPU second over the peer. Nothing is owed by the other rows.
OWED: Final = 5.0
NOTHING: Final = 0.0

#: Messages in flight where every one is answered.
ANSWERED: Final = 5000

WORKLOADS: Final = (
    Workload("stomp auto 100 B", 100, TRANSIENT, OWED, protocol=STOMP),
    Workload("stomp auto 1 KiB", 1024, TRANSIENT, NOTHING, protocol=STOMP),
    Workload("stomp auto 100 B, correlated", 100, TRANSIENT, NOTHING, correlated=True, protocol=STOMP),
    Workload("stomp client-individual 100 B", 100, TRANSIENT, NOTHING, ack_every=1, protocol=STOMP),
    Workload("stomp fanout 1 to 10 auto 100 B", 100, FANOUT, NOTHING, shape=Shape.FANOUT, protocol=STOMP),
    Workload("stomp receipts 100 B", 100, ANSWERED, NOTHING, confirms=True, protocol=STOMP),
    Workload(
        "stomp persistent receipts 100 B",
        100,
        ANSWERED,
        NOTHING,
        ack_every=BULK,
        confirms=True,
        persistent=True,
        protocol=STOMP,
    ),
)
