"""The time from a publish until a streaming query of Spark has the row."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Final

from benchmarks.load.amqp import wire
from benchmarks.load.amqp.client import connected
from benchmarks.load.figure import Figure, at_most
from benchmarks.load.gateway import MANAGEMENT
from benchmarks.load.latency import latency
from benchmarks.load.running import Broker
from benchmarks.load.workloads import AMQP
from benchmarks.pipeline.spark_process import VISIBLE, spark_process

STREAM: Final = "bench.visible"
KIND: Final[Mapping[str, str | int]] = {"x-queue-type": "stream"}

#: Messages a second; how long the query runs; the first of its seconds are those of its start.
RATE, QUERY_S, START_S = 100, 40.0, 15.0

#: Required median, in milliseconds.
VISIBLE_MS: Final = 150.0


def measure_visibility(broker: Broker, directory: Path, cores: Sequence[int]) -> Sequence[Figure]:
    """Publish at a steady rate while a query runs."""
    port, is_over = broker.ports[AMQP], Event()
    with connected(port) as control:
        control.declare_queue(STREAM, durable=True, arguments=KIND)
    with spark_process(broker.ports[MANAGEMENT], STREAM, directory, cores) as ask:
        publisher = Thread(target=_publish, args=(port, is_over))
        publisher.start()
        try:
            delays = ask(f"{VISIBLE} {QUERY_S}")["delays"]
        finally:
            is_over.set()
            publisher.join()
    steady = latency(delays[int(START_S * RATE) :])
    return [
        at_most("publish to visible in a query, p50, ms", steady.p50_ms, VISIBLE_MS),
        Figure("the same, p99, ms", f"{steady.p99_ms:.0f}"),
    ]


def _publish(port: int, is_over: Event) -> None:
    """Publish the time, until told to end."""
    with connected(port) as client:
        while not is_over.wait(1 / RATE):
            client.socket.sendall(wire.publish("", STREAM, f"{time.time():.6f}".encode(), persistent=True))
