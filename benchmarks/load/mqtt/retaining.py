"""Messages that are retained, each in a new topic of its own."""

from itertools import count
from typing import Final

from benchmarks.load.latency import latency
from benchmarks.load.measurement import Measurement, stopwatch
from benchmarks.load.mqtt import wire
from benchmarks.load.mqtt.client import Client, connected
from benchmarks.load.running import Broker
from benchmarks.load.workloads import Workload

#: Topics of one run, whatever its length: as many as the figures of the project are about.
TOPICS: Final = 10_000

#: Topics that are stored before the measurement.
WARM_UP: Final = 1_000

#: Every measurement uses new names.
_serial = count(1)


def measure_retaining(broker: Broker, workload: Workload, seconds: float) -> Measurement:
    """Retain a message in each of many topics, a window at a time; then remove them all."""
    prefix = f"bench/{next(_serial)}"
    with connected(broker.ports[workload.protocol], f"{prefix}/publisher") as client:
        body = bytes(workload.body_bytes)
        warm_up = _bursts(f"{prefix}/before", WARM_UP, body, workload)
        bursts = _bursts(prefix, TOPICS, body, workload)
        _publish(client, warm_up, workload)
        with stopwatch(broker.pid) as watch:
            _publish(client, bursts, workload)
        for topics, size in ((prefix, TOPICS), (f"{prefix}/before", WARM_UP)):
            _publish(client, _bursts(topics, size, b"", workload), workload)
    return Measurement(TOPICS, watch, latency([watch.wall_s]), None)


def _bursts(prefix: str, size: int, body: bytes, workload: Workload) -> list[bytes]:
    """Return the packets of each window: one for each topic."""
    packets = [
        wire.publish(f"{prefix}/{number:05}/state", body, workload.qos, number % workload.window + 1, is_retained=True)
        for number in range(size)
    ]
    return [b"".join(packets[at : at + workload.window]) for at in range(0, size, workload.window)]


def _publish(client: Client, bursts: list[bytes], workload: Workload) -> None:
    acks = wire.acks(wire.PUBACK, wire.identifiers(workload.window))
    for burst in bursts:
        client.send(burst)
        client.expect(acks)
