"""Workloads whose messages wait in their queue before a consumer starts: filled and drained in turn."""

import select
from time import perf_counter

from benchmarks.load.client_rig import Arrival, QueueLane
from benchmarks.load.drive import drain
from benchmarks.load.measurement import Measurement, stopwatch
from benchmarks.load.protocols import open_queue_lanes
from benchmarks.load.running import Broker
from benchmarks.load.workloads import Workload


def measure_waiting(broker: Broker, workload: Workload, seconds: float) -> Measurement:
    """Fill a window of messages, consume them, and repeat for this long, after one warm-up round."""
    with open_queue_lanes(broker, workload) as (lane,):
        (arrival,) = lane.probe().arrivals
        lane.pause()
        arrival = _round(lane, workload.window, arrival)
        rounds = 0
        with stopwatch(broker.pid) as watch:
            end = perf_counter() + seconds
            while perf_counter() < end:
                arrival = _round(lane, workload.window, arrival)
                rounds += 1
        return Measurement(rounds * workload.window, watch, None, None)


def _round(lane: QueueLane, messages: int, arrival: Arrival) -> Arrival:
    """Fill and drain; return the last arrival."""
    lane.fill(messages)
    with select.epoll() as poll:
        consumer = lane.resume(poll, arrival)
        drain(poll, [consumer], messages)
        consumer.link.release()
    lane.pause()
    lane.settle()
    return Arrival(arrival.tag + messages, arrival.wire_bytes)
