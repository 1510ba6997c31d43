"""Workloads whose messages wait in their queue before a consumer starts: filled and drained in turn."""

import select
from time import perf_counter

from benchmarks.load.client_rig import Arrival, QueueRig
from benchmarks.load.drive import drain
from benchmarks.load.measurement import Measurement, stopwatch
from benchmarks.load.protocols import open_queue_rigs
from benchmarks.load.running import Broker
from benchmarks.load.workloads import Workload


def measure_waiting(broker: Broker, workload: Workload, seconds: float) -> Measurement:
    """Fill a window of messages, consume them, and repeat for this long, after one warm-up round."""
    with open_queue_rigs(broker, workload) as (rig,):
        (arrival,) = rig.probe().arrivals
        rig.pause()
        arrival = _round(rig, workload.window, arrival)
        rounds = 0
        with stopwatch(broker.pid) as watch:
            end = perf_counter() + seconds
            while perf_counter() < end:
                arrival = _round(rig, workload.window, arrival)
                rounds += 1
        return Measurement(rounds * workload.window, watch, None, None)


def _round(rig: QueueRig, messages: int, arrival: Arrival) -> Arrival:
    """Fill and drain; return the last arrival."""
    rig.fill(messages)
    with select.epoll() as poll:
        consumer = rig.resume(poll, arrival)
        drain(poll, [consumer], messages)
        consumer.link.release()
    rig.pause()
    rig.settle()
    return Arrival(arrival.tag + messages, arrival.wire_bytes)
