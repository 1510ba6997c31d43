"""The exchanges, queues and bindings of a workload, created for one measurement and removed after it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from benchmarks.load.amqp import wire
from benchmarks.load.amqp.client import Client
from benchmarks.load.workloads import Shape, Workload

TOPIC_BINDINGS: Final = 1000
TOPIC_QUEUES: Final = 10
FANOUT_QUEUES: Final = 10
PAIRS: Final = 4
HEADERS_BINDINGS: Final = 100

#: The messages that a full queue holds.
FULL: Final = 100

#: Every measurement uses new names, so that nothing cached for a name helps the next one.
_serial = count(1)


@dataclass(frozen=True, slots=True)
class Route:
    """The exchange, routing key and headers of one publisher, and the queues that receive each of its messages."""

    exchange: str
    routing_key: str
    queues: Sequence[str]
    headers: Mapping[str, str | int] = field(default_factory=dict)


@contextmanager
def topology(client: Client, workload: Workload) -> Iterator[Sequence[Route]]:
    """Declare the workload's topology; at the end check that no message is left, and delete it."""
    prefix = f"bench.{next(_serial)}"
    match workload.shape:
        case Shape.PAIR:
            queues, exchange = _queues(client, workload, prefix, 1), ""
            routes = [Route("", queues[0], queues)]
        case Shape.FOUR_PAIRS:
            queues, exchange = _queues(client, workload, prefix, PAIRS), ""
            routes = [Route("", queue, [queue]) for queue in queues]
        case Shape.FANOUT:
            queues, exchange = _queues(client, workload, prefix, FANOUT_QUEUES), prefix
            routes = [_fanout(client, exchange, queues)]
        case Shape.TOPIC:
            queues, exchange = _queues(client, workload, prefix, TOPIC_QUEUES), prefix
            routes = [topic_route(client, exchange, queues, TOPIC_BINDINGS)]
        case Shape.HEADERS:
            queues, exchange = _queues(client, workload, prefix, TOPIC_QUEUES), prefix
            routes = [_headers(client, exchange, queues)]
        case Shape.OVERFLOW:
            queues, exchange = _full_queue(client, workload, prefix), ""
            routes = [Route("", queues[0], queues[1:])]
    yield routes
    for queue in queues:
        client.delete_queue(queue)
    if exchange:
        client.delete_exchange(exchange)


def _queues(client: Client, workload: Workload, prefix: str, size: int) -> Sequence[str]:
    names = [f"{prefix}.{index}" for index in range(size)]
    for name in names:
        client.declare_queue(name, durable=workload.persistent, arguments=dict(workload.queue.arguments))
    return names


def _fanout(client: Client, exchange: str, queues: Sequence[str]) -> Route:
    client.declare_exchange(exchange, "fanout")
    for queue in queues:
        client.bind_queue(queue, exchange, "")
    return Route(exchange, "news", queues)


def topic_route(client: Client, exchange: str, queues: Sequence[str], bindings: int) -> Route:
    """Distribute patterns of three kinds over the queues; the routing key matches exactly one."""
    client.declare_exchange(exchange, "topic")
    patterns = ("site.{}.*.temperature", "*.{}.boiler.temperature", "site.{}.#")
    for number in range(bindings):
        pattern = patterns[number % len(patterns)].format(number)
        client.bind_queue(queues[number % len(queues)], exchange, pattern)
    matched = bindings // 2
    return Route(exchange, f"site.{matched}.boiler.temperature", [queues[matched % len(queues)]])


def _headers(client: Client, exchange: str, queues: Sequence[str]) -> Route:
    """Distribute 100 bindings over the queues, each of two headers with ten values; a message matches exactly one."""
    client.declare_exchange(exchange, "headers")
    wanted: list[Mapping[str, str | int]] = [
        {"site": f"site {number // 10}", "line": number % 10} for number in range(HEADERS_BINDINGS)
    ]
    for number, arguments in enumerate(wanted):
        client.bind_queue(queues[number % len(queues)], exchange, "", arguments)
    matched = HEADERS_BINDINGS // 2
    return Route(exchange, "", [queues[matched % len(queues)]], wanted[matched])


def _full_queue(client: Client, workload: Workload, prefix: str) -> Sequence[str]:
    """Declare a queue that holds as many messages as it may, and the one that gets its dead letters."""
    full, dead = f"{prefix}.full", f"{prefix}.dead"
    letters = {"x-max-length": FULL, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
    client.declare_queue(full, durable=workload.persistent, arguments=letters)
    client.declare_queue(dead, durable=workload.persistent)
    correlation_id = f"{0:012}" if workload.correlated else None  # as large as those of the workload
    body = bytes(workload.body_bytes)
    message = wire.publish("", full, body, persistent=workload.persistent, correlation_id=correlation_id)
    client.socket.sendall(message * FULL)
    return full, dead
