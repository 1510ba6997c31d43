"""Workloads with one message outstanding, which measure the latency of a single request."""

import socket
import struct
from collections.abc import Callable, Sequence
from time import perf_counter

from benchmarks.load.client_rig import Exchange, Lost
from benchmarks.load.latency import latency
from benchmarks.load.measurement import Measurement, Stopwatch, stopwatch
from benchmarks.load.protocols import open_exchange_rigs, open_queue_rigs
from benchmarks.load.running import Broker
from benchmarks.load.workloads import Workload


def measure_round_trip(broker: Broker, workload: Workload, seconds: float) -> Measurement:
    """Publish, wait for the delivery, repeat."""
    with open_exchange_rigs(broker, workload) as (rig,):
        before = rig.probe()
        waits, watch = _repeat(broker, rig.delivery(before), seconds)
        rig.check(before, rig.probe(), len(waits))
        return Measurement(len(waits), watch, latency(waits), None)


def measure_confirm_round_trip(broker: Broker, workload: Workload, seconds: float) -> Measurement:
    """Publish, wait for the confirm, repeat, without a consumer."""
    with open_queue_rigs(broker, workload, consume=False) as (rig,):
        waits, watch = _repeat(broker, rig.confirm(), seconds)
        if (waiting := rig.waiting()) != len(waits):
            raise Lost(f"{waiting} of {len(waits)} confirmed messages are queued")
        return Measurement(len(waits), watch, None, latency(waits))


def _repeat(broker: Broker, exchange: Exchange, seconds: float) -> tuple[Sequence[float], Stopwatch]:
    """Exchange one message at a time for this many seconds; return the duration of each exchange."""
    for connection in {exchange.outward, exchange.inward}:
        _make_blocking(connection)
    send, receive, message = exchange.outward.sendall, _reader(exchange), exchange.message
    waits = []
    with stopwatch(broker.pid) as watch:
        end = perf_counter() + seconds
        while (start := perf_counter()) < end:
            send(message)
            receive()
            waits.append(perf_counter() - start)
    return waits, watch


def _make_blocking(connection: socket.socket) -> None:
    """Use the kernel's timeout: Python's own costs a poll before every call."""
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 30, 0))


def _reader(exchange: Exchange) -> Callable[[], None]:
    """Return a function that reads one answer."""
    if exchange.end:
        return _reader_to(exchange.inward, exchange.end)
    return _reader_of(exchange.inward, exchange.answer_bytes)


def _reader_to(connection: socket.socket, end: bytes) -> Callable[[], None]:
    """Return a function that reads until the end of one answer."""

    def read() -> None:
        while end not in (octets := connection.recv(65536)):
            if not octets:
                raise ConnectionError("the broker closed a connection under load")

    return read


def _reader_of(connection: socket.socket, size: int) -> Callable[[], None]:
    """Return a function that reads one answer of exactly this size."""
    buffer = memoryview(bytearray(size))

    def read() -> None:
        missing = size
        while missing:
            received = connection.recv_into(buffer[:missing])
            if not received:
                raise ConnectionError("the broker closed a connection under load")
            missing -= received

    return read
