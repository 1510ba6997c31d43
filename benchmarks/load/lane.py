"""A publisher and its consumers while they are not driven: set up, probed, and held to account."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from benchmarks.load import wire
from benchmarks.load.client import Arrival, Client, connected
from benchmarks.load.measurement import Lost
from benchmarks.load.topology import Route
from benchmarks.load.workloads import Workload


@dataclass(frozen=True, slots=True)
class Probe:
    """One message's fate: what each consumer saw of it, and its confirm's tag (0 without confirms)."""

    arrivals: Sequence[Arrival]
    confirm_tag: int


@dataclass(frozen=True, slots=True)
class Lane:
    """One route with a connection for its publisher and one for the consumer of each of its queues."""

    workload: Workload
    route: Route
    message: bytes
    publisher: Client
    consumers: Sequence[Client]

    def probe(self) -> Probe:
        """Send one message and read all that follows from it; acknowledge whatever is still owed."""
        self.publisher.socket.sendall(self.message)
        arrivals = [consumer.read_arrival() for consumer in self.consumers]
        if self.workload.ack_every:
            for consumer, arrival in zip(self.consumers, arrivals, strict=True):
                consumer.socket.sendall(wire.acks(arrival.tag, 1, 1, multiple=True))
        return Probe(arrivals, self.publisher.read_confirm() if self.workload.confirms else 0)

    def settle(self) -> None:
        """Return once the broker has seen every acknowledgement; nothing may be left in the queues."""
        for consumer, queue in zip(self.consumers, self.route.queues, strict=True):
            if waiting := consumer.declare_queue(queue, passive=True):
                raise Lost(f"{waiting} messages were not delivered from {queue}")


def open_lane(stack: ExitStack, port: int, workload: Workload, route: Route, *, consume: bool = True) -> Lane:
    """Connect a route's clients; they are closed with the stack."""
    publisher = stack.enter_context(connected(port))
    if workload.confirms:
        publisher.confirm_select()
    consumers = []
    for queue in route.queues if consume else ():
        consumer = stack.enter_context(connected(port))
        consumer.consume(queue, no_ack=not workload.ack_every)
        consumers.append(consumer)
    message = wire.publish(
        route.exchange, route.routing_key, bytes(workload.body_bytes), persistent=workload.persistent
    )
    return Lane(workload, route, message, publisher, consumers)


def check_account(before: Probe, after: Probe, messages: int) -> None:
    """Between two probes the broker's own tags must have risen by exactly the messages counted."""
    for first, last in zip(before.arrivals, after.arrivals, strict=True):
        if last.tag - first.tag != messages + 1:
            raise Lost(f"{last.tag - first.tag - 1} deliveries for {messages} messages")
    if before.confirm_tag and after.confirm_tag - before.confirm_tag != messages + 1:
        raise Lost(f"{after.confirm_tag - before.confirm_tag - 1} confirms for {messages} messages")
