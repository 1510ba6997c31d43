"""A long queue of persistent messages without a consumer: memory, restart, drain, and reuse of disk space."""

import select
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.load.amqp import wire
from benchmarks.load.amqp.client import Client, connected
from benchmarks.load.amqp.filling import fill
from benchmarks.load.amqp.receipts import Acks
from benchmarks.load.client_rig import Lost
from benchmarks.load.consumer import Consumer, Sizes
from benchmarks.load.drive import drain
from benchmarks.load.link import Link
from benchmarks.load.peers import Peer
from benchmarks.load.processes import cpu_seconds, directory_bytes, peak_resident_bytes, resident_bytes
from benchmarks.load.workloads import AMQP

QUEUE: Final = "bench.backlog"
BODY_BYTES: Final = 1024
#: Unacknowledged messages during the drain, and the size of an acknowledgement.
CREDIT, ACK_EVERY = 2000, 100
#: After the drain, this part of the backlog is published again to check that its disk space is reused.
REFILL_PART: Final = 5


@dataclass(frozen=True, slots=True)
class Backlog:
    """The results of one backlog.

    Times in seconds, CPU time in microseconds a message, memory and disk in bytes, rates in messages per second.
    """

    messages: int
    fill_rate: float
    fill_cpu_us: float
    filled_resident: int
    filled_peak: int
    first_delivery_s: float
    drain_rate: float
    drain_cpu_us: float
    drained_peak: int
    filled_disk: int
    drained_disk: int
    refilled_disk: int


def measure_backlog(peer: Peer, directory: Path, messages: int) -> Backlog:
    """Fill, restart, time the first delivery, drain, and refill a part."""
    data = directory / "data"
    with peer.launch(directory) as broker, connected(broker.ports[AMQP]) as control:
        control.declare_queue(QUEUE, durable=True)
        cpu_s = cpu_seconds(broker.pid)
        fill_rate = fill(broker.ports[AMQP], QUEUE, messages, BODY_BYTES)
        fill_cpu_s = cpu_seconds(broker.pid) - cpu_s
        filled_resident, filled_peak = resident_bytes(broker.pid), peak_resident_bytes(broker.pid)
        filled_disk = directory_bytes(data)
    start = time.perf_counter()
    with peer.launch(directory) as broker:
        delivery_bytes = first_delivery(broker.ports[AMQP])
        first_delivery_s = time.perf_counter() - start
        cpu_s = cpu_seconds(broker.pid)
        drain_rate = drain_all(broker.ports[AMQP], messages, delivery_bytes)
        drain_cpu_s = cpu_seconds(broker.pid) - cpu_s
        drained_peak, drained_disk = peak_resident_bytes(broker.pid), directory_bytes(data)
        fill(broker.ports[AMQP], QUEUE, messages // REFILL_PART, BODY_BYTES)
        refilled_disk = directory_bytes(data)
    return Backlog(
        messages,
        fill_rate,
        fill_cpu_s / messages * 1e6,
        filled_resident,
        filled_peak,
        first_delivery_s,
        drain_rate,
        drain_cpu_s / messages * 1e6,
        drained_peak,
        filled_disk,
        drained_disk,
        refilled_disk,
    )


def first_delivery(port: int) -> int:
    """Wait for the first message and requeue it by closing; return its size on the wire."""
    with connected(port) as client:
        client.limit_credit(1)
        client.consume(QUEUE, no_ack=False)
        return client.read_arrival().wire_bytes


def drain_all(port: int, messages: int, delivery_bytes: int, ack_every: int = ACK_EVERY) -> float:
    """Consume exactly the messages filled; return messages per second. ``ack_every`` of 0 consumes without acks."""
    with connected(port) as client:
        _await_count(client, messages)
        start = time.perf_counter()
        client.limit_credit(CREDIT)
        client.consume(QUEUE, no_ack=not ack_every)
        early_bytes = client.take_unread()
        with select.epoll() as poll:
            link = Link(client.quiet_socket(), poll)
            acks = Acks(link, 1, ack_every) if ack_every else None
            consumer = Consumer(link, Sizes(delivery_bytes, early_bytes), acks)
            consumer.write()
            drain(poll, [consumer], messages)
            link.release()
        if ack_every and messages % ack_every:
            client.socket.sendall(wire.acks(messages, 1, 1, multiple=True))
        _await_count(client, 0)
        return messages / (time.perf_counter() - start)


def _await_count(client: Client, messages: int, timeout_s: float = 5.0) -> None:
    """Wait until this many messages are ready: one may still be on its way back from a closed consumer."""
    deadline = time.monotonic() + timeout_s
    while (waiting := client.declare_queue(QUEUE, durable=True, passive=True)) != messages:
        if time.monotonic() > deadline:
            raise Lost(f"{waiting} messages are queued, {messages} should be")
        time.sleep(0.05)
