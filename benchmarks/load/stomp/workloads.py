"""The table of STOMP workloads, one row each."""

from typing import Final

from benchmarks.load.workloads import BULK, STOMP, WEB_STOMP, Measure, Shape, Workload

#: The required factor: throughput per CPU second over the peer. The other rows have no requirement.
REQUIRED: Final = 5.0
NOTHING: Final = 0.0

#: Messages in flight. The peer is fastest with few: its CPU per message doubles up to 20,000, while the gateway's
#: does not change.
WINDOW: Final = 200
#: Messages in flight if each is written to disk: as many as one commit may take.
DEEP: Final = 5000


def _persistent(window: int) -> Workload:
    return Workload(
        f"stomp persistent receipts 100 B window {window}",
        100,
        window,
        NOTHING,
        ack_every=BULK,
        confirms=True,
        persistent=True,
        protocol=STOMP,
    )


WORKLOADS: Final = (
    Workload("stomp auto 100 B", 100, WINDOW, REQUIRED, protocol=STOMP),
    Workload("stomp auto 1 KiB", 1024, WINDOW, NOTHING, protocol=STOMP),
    Workload("stomp auto 100 B, correlated", 100, WINDOW, NOTHING, correlated=True, protocol=STOMP),
    Workload("stomp client-individual 100 B", 100, WINDOW, NOTHING, ack_every=1, protocol=STOMP),
    Workload("stomp fanout 1 to 10 auto 100 B", 100, WINDOW, NOTHING, shape=Shape.FANOUT, protocol=STOMP),
    Workload("stomp receipts 100 B", 100, WINDOW, NOTHING, confirms=True, protocol=STOMP),
    _persistent(WINDOW),
    _persistent(DEEP),
    Workload("stomp round trip 100 B", 100, 1, NOTHING, measure=Measure.ROUND_TRIP, protocol=STOMP),
    Workload("web stomp auto 100 B", 100, WINDOW, NOTHING, protocol=WEB_STOMP),
    Workload("web stomp round trip 100 B", 100, 1, NOTHING, measure=Measure.ROUND_TRIP, protocol=WEB_STOMP),
)
