"""A fan-out across the nodes of a cluster: a publisher on one node, consumers on the others."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count, cycle, islice
from typing import Final

from benchmarks.load.amqp import wire
from benchmarks.load.amqp.client import connected
from benchmarks.load.amqp.rig import AmqpRig
from benchmarks.load.amqp.topology import FANOUT_QUEUES, Route
from benchmarks.load.measurement import Measurement
from benchmarks.load.publisher import Cycle
from benchmarks.load.running import Broker
from benchmarks.load.stream import measure_rigs
from benchmarks.load.workloads import Workload

_serial: Final = count(1)


def measure_fan_out(broker: Broker, ports: Sequence[int], workload: Workload, seconds: float) -> Measurement:
    """Publish on the first of the nodes, and consume on the others in turn; count the deliveries."""
    with _open_rig(ports, workload) as rig:
        return measure_rigs(broker, [rig], seconds)


@contextmanager
def _open_rig(ports: Sequence[int], workload: Workload) -> Iterator[AmqpRig]:
    """Connect the clients. Each consumer declares its queue on its own node, where RabbitMQ puts it then."""
    exchange = f"bench.across.{next(_serial)}"
    queues = [f"{exchange}.{number}" for number in range(FANOUT_QUEUES)]
    with ExitStack() as stack:
        publisher = stack.enter_context(connected(ports[0]))
        publisher.declare_exchange(exchange, "fanout")
        consumers = [stack.enter_context(connected(port)) for port in islice(cycle(ports[1:]), len(queues))]
        for consumer, queue in zip(consumers, queues, strict=True):
            consumer.declare_queue(queue)
            consumer.bind_queue(queue, exchange, "")
            consumer.consume(queue, no_ack=True)
        message = wire.publish(exchange, "", bytes(workload.body_bytes), persistent=False)
        yield AmqpRig(workload, Route(exchange, "", queues), Cycle(message, len(message)), publisher, consumers)
        for consumer, queue in zip(consumers, queues, strict=True):
            consumer.cancel()
            consumer.delete_queue(queue)
        publisher.delete_exchange(exchange)
