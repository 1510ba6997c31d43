"""The cost of publishing into a stream, and the speed of its replay by one consumer."""

import select
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from benchmarks.load.amqp import wire
from benchmarks.load.amqp.client import Client, connected
from benchmarks.load.amqp.filling import fill, fill_correlated
from benchmarks.load.amqp.receipts import Acks
from benchmarks.load.client_rig import Lost
from benchmarks.load.consumer import Consumer, Sizes
from benchmarks.load.drive import drain
from benchmarks.load.figure import Figure, at_least, at_most
from benchmarks.load.link import Link
from benchmarks.load.measurement import Stopwatch, stopwatch
from benchmarks.load.pings import pinging
from benchmarks.load.running import Broker
from benchmarks.load.workloads import AMQP

STREAM, CORRELATED, QUEUE = "bench.stream", "bench.correlated", "bench.queue"
KIND: Final[Mapping[str, str | int]] = {"x-queue-type": "stream"}
FROM_THE_START: Final[Mapping[str, str | int]] = {"x-stream-offset": "first"}

#: The number of replayed messages and the size of the bodies.
MESSAGES, BODY_BYTES = 1_000_000, 100
#: Unacknowledged messages during a replay, and the size of an acknowledgement.
CREDIT, ACK_EVERY = 2000, 100
#: Published into a stream and into a queue, for comparison.
PUBLISHED, PUBLISHED_BYTES = 200_000, 1024
#: Alternating repetitions, so that a slow minute affects both.
TURNS: Final = 3
#: Required messages per second.
RATE: Final = 200_000.0
#: Publishing into a stream may cost as much as into a queue, plus this margin for variations of the machine.
MOOD: Final = 1.05


def measure_replay(broker: Broker) -> Sequence[Figure]:
    """Publish into a queue and a stream; then fill a stream and replay it: twice alone, once beside another client.

    Repeat this with messages whose headers all differ.
    """
    port = broker.ports[AMQP]
    turns = [(_publishing_us(broker, QUEUE, {}), _publishing_us(broker, STREAM, KIND)) for _ in range(TURNS)]
    into_queue, into_stream = (median(costs) for costs in zip(*turns, strict=True))
    _declare(port, STREAM)
    fill(port, STREAM, MESSAGES, BODY_BYTES)
    alike = _slower_replay(broker, STREAM)
    with pinging(port) as pings:
        _replay(broker, STREAM)
    _declare(port, CORRELATED)
    fill_correlated(port, CORRELATED, MESSAGES, BODY_BYTES)
    differing = _slower_replay(broker, CORRELATED)
    return [
        at_least("messages of 100 B replayed a second", MESSAGES / alike.wall_s, RATE),
        Figure("broker CPU a message replayed, µs", _broker_us(alike)),
        Figure("longest wait of another client, ms", f"{pings.longest_ms:.0f}"),
        at_least("replayed a second with a correlation-id each", MESSAGES / differing.wall_s, RATE),
        Figure("broker CPU a message replayed with a correlation-id each, µs", _broker_us(differing)),
        at_most("CPU of publishing 1 KiB into a stream over a queue", into_stream / into_queue, MOOD, digits=2),
        Figure("broker CPU a message published into a stream, µs", f"{into_stream:.1f}"),
    ]


def _declare(port: int, stream: str) -> None:
    with connected(port) as control:
        control.declare_queue(stream, durable=True, arguments=KIND)


def _slower_replay(broker: Broker, stream: str) -> Stopwatch:
    """Replay twice, in case the machine is busy; return the slower result."""
    return max(_replay(broker, stream), _replay(broker, stream), key=lambda watch: watch.wall_s)


def _broker_us(watch: Stopwatch) -> str:
    return f"{watch.broker_cpu_s * 1e6 / MESSAGES:.2f}"


def _publishing_us(broker: Broker, queue: str, arguments: Mapping[str, str | int]) -> float:
    """Publish persistent messages; return the broker's cost of one, sealing included, in microseconds of CPU."""
    port = broker.ports[AMQP]
    with connected(port) as control:
        control.declare_queue(queue, durable=True, arguments=arguments)
        with stopwatch(broker.pid) as watch:
            fill(port, queue, PUBLISHED, PUBLISHED_BYTES)
        control.delete_queue(queue)
    return watch.broker_cpu_s * 1e6 / PUBLISHED


def _replay(broker: Broker, stream: str) -> Stopwatch:
    """Consume a stream from its beginning to its end; exactly the messages filled must arrive."""
    with connected(broker.ports[AMQP]) as client:
        delivery_bytes = _delivery_bytes(broker, stream)
        client.limit_credit(CREDIT)
        with stopwatch(broker.pid) as watch, select.epoll() as poll:
            client.consume(stream, no_ack=False, arguments=FROM_THE_START)
            early_bytes = client.take_unread()
            link = Link(client.quiet_socket(), poll)
            consumer = Consumer(link, Sizes(delivery_bytes, early_bytes), Acks(link, 1, ACK_EVERY))
            consumer.write()
            drain(poll, [consumer], MESSAGES)
            link.release()
        _check(client, stream)
        return watch


def _delivery_bytes(broker: Broker, stream: str) -> int:
    """Return the size of one delivery on the wire."""
    with connected(broker.ports[AMQP]) as client:
        client.limit_credit(1)
        client.consume(stream, no_ack=False, arguments=FROM_THE_START)
        return client.read_arrival().wire_bytes


def _check(client: Client, stream: str) -> None:
    """Check that no message is left; an acknowledgement for a missing message is refused. :raises Lost: if any is."""
    client.socket.sendall(wire.acks(MESSAGES, 1, 1, multiple=True) if MESSAGES % ACK_EVERY else b"")
    if (kept := client.declare_queue(stream, durable=True, passive=True)) != MESSAGES:
        raise Lost(f"{kept} messages are in the stream, {MESSAGES} should be")
