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

#: Messages a second; how long the query runs; messages of its first seconds do not count, in which the JVM compiles.
RATE, QUERY_S, START_S = 100, 120.0, 90.0

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
            seen = ask(f"{VISIBLE} {QUERY_S}")
        finally:
            is_over.set()
            publisher.join()
    steady = latency(delays_after(START_S, seen["sent"], seen["delays"]))
    return [
        at_most("publish to visible in a query, p50, ms", steady.p50_ms, VISIBLE_MS),
        Figure("the same, p99, ms", f"{steady.p99_ms:.0f}"),
    ]


def delays_after(start_s: float, sent_s: Sequence[float], delays_s: Sequence[float]) -> Sequence[float]:
    """Return the delays of the messages that were sent later than ``start_s`` seconds after the start of the query.

    :raises RuntimeError: if there are none.
    """
    steady = [delay for sent, delay in zip(sent_s, delays_s, strict=True) if sent >= start_s]
    if not steady:
        raise RuntimeError(f"the query saw no message that was sent after its first {start_s:g} s")
    return steady


def _publish(port: int, is_over: Event) -> None:
    """Publish the time, until told to end."""
    with connected(port) as client:
        while not is_over.wait(1 / RATE):
            client.socket.sendall(wire.publish("", STREAM, f"{time.time():.6f}".encode(), persistent=True))
