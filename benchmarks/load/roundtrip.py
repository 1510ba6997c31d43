"""Workloads with one message outstanding: what a lone request waits for."""

import socket
import struct
from collections.abc import Callable
from contextlib import ExitStack
from time import perf_counter

from benchmarks.load import wire
from benchmarks.load.client import Client, connected
from benchmarks.load.lane import Lane, check_account, open_lane
from benchmarks.load.latency import latency
from benchmarks.load.measurement import Lost, Measurement, stopwatch
from benchmarks.load.peers import Broker
from benchmarks.load.topology import topology
from benchmarks.load.workloads import Workload


def measure_round_trip(broker: Broker, workload: Workload, seconds: float) -> Measurement:
    """Publish, wait for the delivery, repeat."""
    with connected(broker.port) as control, topology(control, workload) as (route,), ExitStack() as stack:
        lane = open_lane(stack, broker.port, workload, route)
        before = lane.probe()
        expected = before.arrivals[0].wire_bytes
        measurement = _measure(broker, lane, lane.consumers[0], expected, seconds, is_delivery=True)
        check_account(before, lane.probe(), measurement.messages)
        return measurement


def measure_confirm_round_trip(broker: Broker, workload: Workload, seconds: float) -> Measurement:
    """Publish, wait for the confirm, repeat; nobody consumes."""
    with connected(broker.port) as control, topology(control, workload) as (route,), ExitStack() as stack:
        lane = open_lane(stack, broker.port, workload, route, consume=False)
        measurement = _measure(broker, lane, lane.publisher, wire.ACK_BYTES, seconds, is_delivery=False)
        waiting = control.declare_queue(route.queues[0], passive=True)
        if waiting != measurement.messages:
            raise Lost(f"{waiting} of {measurement.messages} confirmed messages are queued")
        return measurement


def _measure(
    broker: Broker, lane: Lane, answering: Client, answer_bytes: int, seconds: float, *, is_delivery: bool
) -> Measurement:
    """Exchange one message at a time for so many seconds."""
    for client in {lane.publisher, answering}:
        _make_blocking(client.quiet_socket())
    send, receive = lane.publisher.socket.sendall, _reader(answering.socket, answer_bytes)
    waits = []
    with stopwatch(broker.pid) as watch:
        end = perf_counter() + seconds
        while (start := perf_counter()) < end:
            send(lane.message)
            receive()
            waits.append(perf_counter() - start)
    took = latency(waits)
    return Measurement(len(waits), watch, took if is_delivery else None, None if is_delivery else took)


def _make_blocking(connection: socket.socket) -> None:
    """Let the kernel time out: Python's own timeouts cost a poll before every call."""
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 30, 0))


def _reader(connection: socket.socket, size: int) -> Callable[[], None]:
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
