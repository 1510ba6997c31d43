"""The AMQP rig: a connection for the publisher of a route, and one for the consumer of each of its queues."""

import select
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from benchmarks.load.amqp import wire
from benchmarks.load.amqp.client import Client, connected
from benchmarks.load.amqp.receipts import Acks, Confirms
from benchmarks.load.amqp.topology import Route, topology
from benchmarks.load.client_rig import Arrival, Exchange, Lost, Probe
from benchmarks.load.consumer import Consumer, Sizes
from benchmarks.load.drive import Flow
from benchmarks.load.link import Link
from benchmarks.load.publisher import Cycle, Publisher
from benchmarks.load.workloads import AMQP, Workload

#: Correlated messages with different ids: more than the broker caches the headers of.
NUMBERS = 4096

#: A stream ends by time, not by count.
UNLIMITED = 1 << 60


@dataclass(frozen=True, slots=True)
class AmqpRig:
    """The clients of one route."""

    workload: Workload
    route: Route
    cycle: Cycle
    publisher: Client
    consumers: Sequence[Client]

    def probe(self) -> Probe:
        """Send one message and read everything that follows from it; acknowledge all deliveries."""
        self.publisher.socket.sendall(self.cycle.first)
        arrivals = [consumer.read_arrival() for consumer in self.consumers]
        if self.workload.ack_every:
            for consumer, arrival in zip(self.consumers, arrivals, strict=True):
                consumer.socket.sendall(wire.acks(arrival.tag, 1, 1, multiple=True))
        return Probe(arrivals, self.publisher.read_confirm() if self.workload.confirms else 0)

    def flow(self, poll: select.epoll, probe: Probe) -> Flow:
        """Make the sockets non-blocking and register them as a flow."""
        confirms = Confirms(probe.confirm_tag) if self.workload.confirms else None
        link = Link(self.publisher.quiet_socket(), poll)
        publisher = Publisher(link, self.cycle, self.workload.window, UNLIMITED, confirms)
        ends = zip(self.consumers, probe.arrivals, strict=True)
        return Flow(publisher, [self._consumer(client, poll, arrival) for client, arrival in ends])

    def settle(self) -> None:
        """Query the queues on their consumers' connections: the answer follows the acknowledgements."""
        for consumer, queue in zip(self.consumers, self.route.queues, strict=True):
            if waiting := consumer.declare_queue(queue, passive=True):
                raise Lost(f"{waiting} messages were not delivered from {queue}")

    def check(self, before: Probe, after: Probe, messages: int) -> None:
        """Check that the broker's own tags rose between two probes by exactly the messages counted."""
        for first, last in zip(before.arrivals, after.arrivals, strict=True):
            if last.tag - first.tag != messages + 1:
                raise Lost(f"{last.tag - first.tag - 1} deliveries for {messages} messages")
        if before.confirm_tag and after.confirm_tag - before.confirm_tag != messages + 1:
            raise Lost(f"{after.confirm_tag - before.confirm_tag - 1} confirms for {messages} messages")

    def delivery(self, probe: Probe) -> Exchange:
        """Return the exchange from the publisher to its one consumer."""
        ((consumer,), (arrival,)) = self.consumers, probe.arrivals
        return Exchange(self.publisher.quiet_socket(), consumer.quiet_socket(), self.cycle.first, arrival.wire_bytes)

    def confirm(self) -> Exchange:
        """Return the exchange from the publisher to its confirm."""
        connection = self.publisher.quiet_socket()
        return Exchange(connection, connection, self.cycle.first, wire.ACK_BYTES)

    def waiting(self) -> int:
        """Query on the publisher's connection: the answer follows its publishes."""
        return sum(self.publisher.declare_queue(queue, passive=True) for queue in self.route.queues)

    def fill(self, messages: int) -> None:
        """Publish without a consumer."""
        self.publisher.socket.sendall(self.cycle.take(messages))
        if (waiting := self.waiting()) != messages:
            raise Lost(f"{waiting} of {messages} messages wait")

    def pause(self) -> None:
        """Unsubscribe."""
        for consumer in self.consumers:
            consumer.cancel()

    def resume(self, poll: select.epoll, arrival: Arrival) -> Consumer:
        """Subscribe; bytes that follow the answer count as well."""
        ((client,), (queue,)) = self.consumers, self.route.queues
        client.consume(queue, no_ack=not self.workload.ack_every)
        consumer = self._consumer(client, poll, arrival, client.take_unread())
        consumer.write()
        return consumer

    def _consumer(self, client: Client, poll: select.epoll, arrival: Arrival, early_bytes: int = 0) -> Consumer:
        link = Link(client.quiet_socket(), poll)
        every = self.workload.ack_every
        acks = Acks(link, arrival.tag + 1, every) if every else None
        return Consumer(link, Sizes(arrival.wire_bytes, early_bytes), acks)


@contextmanager
def open_rigs(ports: Mapping[str, int], workload: Workload, *, consume: bool = True) -> Iterator[Sequence[AmqpRig]]:
    """Declare the workload's topology and connect its clients; remove everything at the end of the context."""
    port = ports[AMQP]
    with connected(port) as control, topology(control, workload) as routes, ExitStack() as stack:
        yield [open_rig(stack, port, workload, route, consume=consume) for route in routes]


def open_rig(stack: ExitStack, port: int, workload: Workload, route: Route, *, consume: bool) -> AmqpRig:
    """Connect the clients of one route, whose topology exists, until the stack is closed."""
    publisher = stack.enter_context(connected(port))
    if workload.confirms:
        publisher.confirm_select()
    consumers = [stack.enter_context(connected(port)) for _ in route.queues]
    if consume:
        for consumer, queue in zip(consumers, route.queues, strict=True):
            consumer.consume(queue, no_ack=not workload.ack_every)
    return AmqpRig(workload, route, _cycle(workload, route), publisher, consumers)


def _cycle(workload: Workload, route: Route) -> Cycle:
    """Return one message, one of each priority, or many of which each has a correlation-id of its own."""
    body = bytes(workload.body_bytes)
    messages = [
        wire.publish(
            route.exchange,
            route.routing_key,
            body,
            persistent=workload.persistent,
            priority=priority,
            correlation_id=f"{number:012}" if workload.correlated else None,
            headers=route.headers,
        )
        for number in range(NUMBERS if workload.correlated else 1)
        for priority in workload.priorities or (None,)
    ]
    return Cycle(b"".join(messages), len(messages[0]))
