"""The STOMP rig: a connection for the publisher of a destination, and one for each of its subscribers.

STOMP cannot query the length of a queue, so AMQP is used for that; all compared brokers speak it.
"""

import select
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Final

from benchmarks.load.amqp.client import Client as AmqpClient
from benchmarks.load.amqp.client import connected as amqp_connected
from benchmarks.load.client_rig import Arrival, Exchange, Lost, Probe
from benchmarks.load.consumer import Consumer
from benchmarks.load.drive import Flow
from benchmarks.load.link import Link
from benchmarks.load.publisher import Cycle, Publisher
from benchmarks.load.stomp import wire
from benchmarks.load.stomp.client import Client, Message, connected
from benchmarks.load.stomp.receipts import NUMBERS, Acks, Frames, Receipts
from benchmarks.load.stomp.web import WebClient, WebFrames, framed
from benchmarks.load.workloads import AMQP, WEB_STOMP, Shape, Workload

FANOUT_SUBSCRIBERS: Final = 10
#: A stream ends by time, not by count.
UNLIMITED: Final = 1 << 60

#: Every measurement uses new names, so that nothing cached for a name helps the next one.
_serial = count(1)


@dataclass(frozen=True, slots=True)
class StompRig:
    """The clients of one destination; ``queue`` is its queue, None if each subscriber has its own."""

    workload: Workload
    queue: str | None
    cycle: Cycle
    publisher: Client
    consumers: Sequence[Client]
    control: AmqpClient

    def probe(self) -> Probe:
        """Send one message and read everything that follows from it; acknowledge all deliveries."""
        self.publisher.socket.sendall(self.cycle.first)
        body = _body(self.workload)
        arrivals = [consumer.read_message(body) for consumer in self.consumers]
        if self.workload.ack_every:
            for consumer, arrival in zip(self.consumers, arrivals, strict=True):
                consumer.socket.sendall(wire.acks(arrival.ack_beginning, [arrival.tag]))
        if self.workload.confirms:
            self.publisher.expect("RECEIPT", receipt=wire.numeral(0))
        return Probe(arrivals, 0)

    def flow(self, poll: select.epoll, probe: Probe) -> Flow:
        """Make the sockets non-blocking and register them as a flow."""
        receipts = Receipts(self.workload.window) if self.workload.confirms else None
        link = Link(self.publisher.quiet_socket(), poll)
        publisher = Publisher(link, self.cycle, self.workload.window, UNLIMITED, receipts)
        ends = zip(self.consumers, probe.arrivals, strict=True)
        return Flow(publisher, [self._consumer(client, poll, arrival) for client, arrival in ends])

    def delivery(self, probe: Probe) -> Exchange:
        """Return the exchange of a message for its delivery, whose size grows with the number in its message-id."""
        (consumer,) = self.consumers
        return Exchange(self.publisher.quiet_socket(), consumer.quiet_socket(), self.cycle.first, 0, wire.BODY_END)

    def settle(self) -> None:
        """Wait until the acknowledgements are processed, then query the messages left in the queue."""
        for consumer in self.consumers:
            consumer.sync()
        if self.queue is not None and (waiting := self.control.declare_queue(self.queue, passive=True)):
            raise Lost(f"{waiting} messages were not delivered from {self.queue}")

    def check(self, before: Probe, after: Probe, messages: int) -> None:
        """Check that the numbers in the broker's message-ids rose between two probes by the messages counted."""
        for first, last in zip(before.arrivals, after.arrivals, strict=True):
            if last.tag - first.tag != messages + 1:
                raise Lost(f"{last.tag - first.tag - 1} deliveries for {messages} messages")

    def _consumer(self, client: Client, poll: select.epoll, arrival: Arrival) -> Consumer:
        assert isinstance(arrival, Message)
        link = Link(client.quiet_socket(), poll)
        every = self.workload.ack_every
        acks = Acks(link, arrival.ack_beginning, arrival.tag + 1, every) if every else None
        return Consumer(link, WebFrames() if _is_web(self.workload) else Frames(), acks)


@contextmanager
def open_rigs(ports: Mapping[str, int], workload: Workload) -> Iterator[Sequence[StompRig]]:
    """Subscribe and connect the publisher; clients and queue are removed when the context ends."""
    name = f"bench.stomp.{next(_serial)}"
    queue = None if workload.shape is Shape.FANOUT else name
    destination = f"/topic/{name}" if queue is None else f"/queue/{name}"
    with amqp_connected(ports[AMQP]) as control, ExitStack() as stack:
        port, kind = ports[workload.protocol], WebClient if _is_web(workload) else Client
        consumers = [stack.enter_context(connected(port, kind)) for _ in range(_subscribers(workload))]
        for consumer in consumers:
            consumer.subscribe(destination, _ack_mode(workload))
        publisher = stack.enter_context(connected(port, kind))
        yield [StompRig(workload, queue, _cycle(workload, destination), publisher, consumers, control)]
        if queue is not None:
            control.delete_queue(queue)


def _is_web(workload: Workload) -> bool:
    return workload.protocol == WEB_STOMP


def _subscribers(workload: Workload) -> int:
    return FANOUT_SUBSCRIBERS if workload.shape is Shape.FANOUT else 1


def _ack_mode(workload: Workload) -> str:
    """Return the ack mode: auto, individual, or cumulative."""
    return {0: "auto", 1: "client-individual"}.get(workload.ack_every, "client")


def _body(workload: Workload) -> bytes:
    """Return a body without NULs, because NULs mark the end of frames."""
    return wire.BODY_LETTER * workload.body_bytes


def _cycle(workload: Workload, destination: str) -> Cycle:
    """Return one message, or one for each number if messages must differ."""
    numbers = range(NUMBERS) if workload.confirms or workload.correlated else range(1)
    messages = [
        wire.send(
            destination,
            _body(workload),
            number,
            persistent=workload.persistent,
            correlated=workload.correlated,
            receipt=workload.confirms,
        )
        for number in numbers
    ]
    if _is_web(workload):
        messages = list(map(framed, messages))
    return Cycle(b"".join(messages), len(messages[0]))
