"""The table of MQTT workloads, one row each."""

from typing import Final

from benchmarks.load.workloads import MQTT, Measure, Workload

#: The required ratio: at most the peer's CPU per delivery.
REQUIRED: Final = 1.0
#: Storing retained messages: at most 1.5 times the CPU of a peer that writes nothing to the disk.
REQUIRED_RETAINED: Final = 1 / 1.5
BODY_BYTES: Final = 100
CROWD: Final = 1_000

#: Publishers, subscribers, and the number of messages each publisher sends at once in batches.
SHAPES: Final = ((1, 1, 500), (1, 100, 100), (1, CROWD, 20), (CROWD, 1, 20))


def _workload(qos: int, publishers: int, subscribers: int, window: int) -> Workload:
    how = "batched" if window > 1 else "one outstanding"
    return Workload(
        f"mqtt QoS {qos}, {publishers:,} to {subscribers:,}, {how}",
        BODY_BYTES,
        window,
        REQUIRED,
        measure=Measure.ROUNDS,
        protocol=MQTT,
        qos=qos,
        publishers=publishers,
        subscribers=subscribers,
    )


WORKLOADS: Final = (
    *(
        _workload(qos, publishers, subscribers, window)
        for qos in (0, 1)
        for publishers, subscribers, batch in SHAPES
        for window in (batch, 1)
    ),
    *(_workload(2, 1, 1, window) for window in (100, 1)),
    Workload(
        "mqtt QoS 1, retained in 10,000 topics",
        BODY_BYTES,
        500,
        REQUIRED_RETAINED,
        measure=Measure.RETAINING,
        protocol=MQTT,
        qos=1,
    ),
)
