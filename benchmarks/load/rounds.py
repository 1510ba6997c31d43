"""Workloads of many publishers and subscribers in synchronised rounds."""

from collections.abc import Sequence
from contextlib import nullcontext
from time import perf_counter

from benchmarks.load.cores import one_core_shared
from benchmarks.load.latency import latency
from benchmarks.load.measurement import Measurement, stopwatch
from benchmarks.load.mqtt.client_group import ClientGroup, open_client_group
from benchmarks.load.running import Broker
from benchmarks.load.workloads import Workload


def measure_rounds(broker: Broker, workload: Workload, seconds: float) -> Measurement:
    """Repeat rounds for this long, after a warm-up of a fifth of that.

    With one message outstanding the broker and this process run in turns on one core.
    """
    place = one_core_shared(broker.pid) if workload.window == 1 else nullcontext()
    with open_client_group(broker.ports[workload.protocol], workload) as group, place:
        _repeat(group, seconds / 5)
        with stopwatch(broker.pid) as watch:
            waits = _repeat(group, seconds)
            group.settle()
        return Measurement(len(waits) * group.deliveries, watch, latency(waits), None)


def _repeat(group: ClientGroup, seconds: float) -> Sequence[float]:
    """Return the duration of each round, until all clients have received everything."""
    waits = []
    end = perf_counter() + seconds
    while (start := perf_counter()) < end:
        group.round()
        waits.append(perf_counter() - start)
    return waits
