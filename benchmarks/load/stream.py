"""Workloads with many messages in flight."""

import select
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from benchmarks.load.client import connected
from benchmarks.load.consumer import Acks, Consumer
from benchmarks.load.drive import Flow, drive
from benchmarks.load.lane import Lane, Probe, check_account, open_lane
from benchmarks.load.latency import Latency, delays, latency
from benchmarks.load.link import Link, Progress
from benchmarks.load.measurement import Measurement, stopwatch
from benchmarks.load.peers import Broker
from benchmarks.load.publisher import Confirms, Publisher
from benchmarks.load.topology import topology
from benchmarks.load.workloads import Workload

#: A stream ends by time, not by number.
UNLIMITED = 1 << 60


def measure_stream(broker: Broker, workload: Workload, seconds: float) -> Measurement:
    """Drive the workload for so long; a fifth of that beforehand, not counted, warms both sides up."""
    with connected(broker.port) as control, topology(control, workload) as routes, ExitStack() as stack:
        lanes = [open_lane(stack, broker.port, workload, route) for route in routes]
        _run(broker, lanes, seconds / 5)
        return _run(broker, lanes, seconds)


def _run(broker: Broker, lanes: Sequence[Lane], seconds: float) -> Measurement:
    """Drive all lanes between two probes of each and account for every message."""
    before = [lane.probe() for lane in lanes]
    with select.epoll() as poll:
        flows = [_flow(poll, lane, probe) for lane, probe in zip(lanes, before, strict=True)]
        with stopwatch(broker.pid) as watch:
            drive(poll, flows, seconds)
            _release(flows)
            for lane in lanes:
                lane.settle()
    for lane, flow, probe in zip(lanes, flows, before, strict=True):
        check_account(probe, lane.probe(), flow.publisher.messages)
    deliveries = sum(consumer.delivered for flow in flows for consumer in flow.consumers)
    return Measurement(deliveries, watch, _latency_of(flows, _delivered), _latency_of(flows, _confirmed))


def _delivered(flow: Flow) -> Sequence[Progress]:
    return [consumer.received for consumer in flow.consumers]


def _confirmed(flow: Flow) -> Sequence[Progress]:
    return [flow.publisher.confirmed] if flow.publisher.confirms is not None else []


def _latency_of(flows: Sequence[Flow], arrived: Callable[[Flow], Sequence[Progress]]) -> Latency | None:
    """From publish to whatever ``arrived`` picks, over all flows; None when there is no such thing."""
    waits = [wait for flow in flows for notes in arrived(flow) for wait in delays(flow.publisher.sent, notes)]
    return latency(waits) if waits else None


def _flow(poll: select.epoll, lane: Lane, probe: Probe) -> Flow:
    """Make a lane's sockets non-blocking ends of a flow; the probe tells sizes and tags."""
    workload = lane.workload
    confirms = Confirms(probe.confirm_tag) if workload.confirms else None
    publisher = Publisher(Link(lane.publisher.quiet_socket(), poll), lane.message, workload.window, UNLIMITED, confirms)
    consumers = []
    for client, arrival in zip(lane.consumers, probe.arrivals, strict=True):
        link = Link(client.quiet_socket(), poll)
        acks = Acks(link, arrival.tag + 1, workload.ack_every) if workload.ack_every else None
        consumers.append(Consumer(link, arrival.wire_bytes, acks))
    return Flow(publisher, consumers)


def _release(flows: Sequence[Flow]) -> None:
    for flow in flows:
        for endpoint in flow.endpoints:
            endpoint.link.release()
