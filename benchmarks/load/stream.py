"""Workloads with many messages in flight."""

import select
from collections.abc import Callable, Sequence

from benchmarks.load.client_rig import ClientRig
from benchmarks.load.drive import Flow, drive
from benchmarks.load.latency import Latency, delays, latency
from benchmarks.load.link import Progress
from benchmarks.load.measurement import Measurement, stopwatch
from benchmarks.load.protocols import open_rigs
from benchmarks.load.running import Broker
from benchmarks.load.workloads import Workload


def measure_stream(broker: Broker, workload: Workload, seconds: float) -> Measurement:
    """Drive the workload for this long, after a warm-up of a fifth of that."""
    with open_rigs(broker, workload) as rigs:
        return measure_rigs(broker, rigs, seconds)


def measure_rigs(broker: Broker, rigs: Sequence[ClientRig], seconds: float) -> Measurement:
    """Drive open rigs for this long, after a warm-up of a fifth of that."""
    _run(broker, rigs, seconds / 5)
    return _run(broker, rigs, seconds)


def _run(broker: Broker, rigs: Sequence[ClientRig], seconds: float) -> Measurement:
    """Drive all rigs between two probes of each and account for every message."""
    before = [rig.probe() for rig in rigs]
    with select.epoll() as poll:
        flows = [rig.flow(poll, probe) for rig, probe in zip(rigs, before, strict=True)]
        with stopwatch(broker.pid) as watch:
            drive(poll, flows, seconds)
            _release(flows)
            for rig in rigs:
                rig.settle()
    for rig, flow, probe in zip(rigs, flows, before, strict=True):
        rig.check(probe, rig.probe(), flow.publisher.messages)
    deliveries = sum(consumer.delivered for flow in flows for consumer in flow.consumers)
    return Measurement(deliveries, watch, _latency_of(flows, _delivered), _latency_of(flows, _confirmed))


def _delivered(flow: Flow) -> Sequence[Progress]:
    return [consumer.received for consumer in flow.consumers]


def _confirmed(flow: Flow) -> Sequence[Progress]:
    return [flow.publisher.confirmed] if flow.publisher.confirms is not None else []


def _latency_of(flows: Sequence[Flow], arrived: Callable[[Flow], Sequence[Progress]]) -> Latency | None:
    """Return the latency from publish to the record that ``arrived`` selects, over all flows; None if there is none."""
    waits = [wait for flow in flows for notes in arrived(flow) for wait in delays(flow.publisher.sent, notes)]
    return latency(waits) if waits else None


def _release(flows: Sequence[Flow]) -> None:
    for flow in flows:
        for endpoint in flow.endpoints:
            endpoint.link.release()
