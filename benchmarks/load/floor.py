"""The generator's own cost, measured against a relay that only copies bytes.

The generator's cost beside a broker depends on how the broker writes: many small writes cause many reads. The floor
is the generator's own part.
"""

import multiprocessing
import select
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from time import process_time
from typing import Final

from benchmarks.load.amqp import wire
from benchmarks.load.amqp.receipts import Acks
from benchmarks.load.consumer import Consumer, Sizes
from benchmarks.load.drive import Flow, collector_paused, drive
from benchmarks.load.link import Link
from benchmarks.load.publisher import Cycle, Publisher

WINDOW: Final = 20_000
SECONDS: Final = 0.5
#: Body bytes, and deliveries per acknowledgement (0 for none).
CASES: Final = ((100, 0), (100, 1), (100, 100), (1024, 0))


@dataclass(frozen=True, slots=True)
class Floor:
    """CPU microseconds per message in the generator, without a broker."""

    body_bytes: int
    ack_every: int
    generator_us: float

    def __str__(self) -> str:
        how = {0: "auto-ack", 1: "ack each"}.get(self.ack_every, "ack multiple")
        return f"{self.generator_us:.2f} µs ({self.body_bytes} B {how})"


def measure_floors() -> Sequence[Floor]:
    """Measure every case briefly."""
    return [Floor(body_bytes, ack_every, _measure(body_bytes, ack_every)) for body_bytes, ack_every in CASES]


def _measure(body_bytes: int, ack_every: int) -> float:
    message = wire.publish("", "queue", bytes(body_bytes), persistent=False)
    with _relay() as (outward, inward), select.epoll() as poll, collector_paused():
        publisher = Publisher(Link(outward, poll), Cycle(message, len(message)), WINDOW, 1 << 60, None)
        link = Link(inward, poll)
        # The relay returns the publishes unchanged, so a delivery is as long as a publish.
        consumer = Consumer(link, Sizes(len(message)), Acks(link, 1, ack_every) if ack_every else None)
        start = process_time()
        drive(poll, [Flow(publisher, [consumer])], SECONDS)
        return (process_time() - start) * 1e6 / consumer.delivered


@contextmanager
def _relay() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Run a relay process; yield the socket to send to and the one that returns the same bytes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = multiprocessing.Process(target=_copy, args=(server,), daemon=True)
        process.start()
        outward = socket.create_connection(server.getsockname())
        inward = socket.create_connection(server.getsockname())
    with closing(outward), closing(inward):
        yield outward, inward
    process.join()


def _copy(server: socket.socket) -> None:
    """Copy from the first connection to the second, and discard data from the second, until the first ends."""
    source, _ = server.accept()
    target, _ = server.accept()
    while True:
        readable, _, _ = select.select([source, target], [], [])
        for connection in readable:
            octets = connection.recv(65536)
            if connection is source:
                if not octets:
                    return
                target.sendall(octets)
