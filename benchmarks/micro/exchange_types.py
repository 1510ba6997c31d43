"""The cost of exchange types over many queues, each compared with direct, in the kernel on a store in memory.

    python benchmarks/micro/exchange_types.py [messages] [queues]

A transient message of 100 bytes is published, delivered to a consumer of its queue and acknowledged at once. Direct and
the other type take turns, and the best of several rounds counts, so that both see the same machine. A whole broker
spends several times as much on a message, so ratios measured by clients are smaller. ``distinct`` has a new key or
header value in every message: nothing is cached. Then: the time of one route of ``x-rtopic`` that examines all
bindings.
"""

import gc
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from gateway.kernel.messages.message import Header, Message, Properties, Value
from gateway.kernel.routing.exchange import Exchange
from gateway.testing import MemoryBroker, Recipient, StandIn, plain_message, stand_in_binding
from gateway_amqp.header import AMQP
from gateway_amqp.properties import encode_properties
from gateway_exchanges.reverse_topic import ReverseTopic

TURN: Final = 100
ROUNDS: Final = 7
KNOWN_KEYS: Final = 1000


@dataclass
class Row:
    """One measured exchange. ``is_distinct``: no value is repeated. ``header``: the name of the hashed header."""

    label: str
    type: str
    arguments: dict[str, Value] = field(default_factory=dict)
    header: str = ""
    is_distinct: bool = False


DIRECT: Final = Row("direct, a key per queue", "direct")
ROWS: Final = (
    Row("x-consistent-hash, 1,000 keys", "x-consistent-hash"),
    Row("x-consistent-hash, distinct keys", "x-consistent-hash", is_distinct=True),
    Row("x-consistent-hash, 1,000 header values", "x-consistent-hash", {"hash-header": "h"}, "h"),
    Row("x-consistent-hash, distinct header values", "x-consistent-hash", {"hash-header": "h"}, "h", is_distinct=True),
    Row("x-modulus-hash, 1,000 keys", "x-modulus-hash"),
    Row("x-random", "x-random"),
)


class Bench:
    """A broker with one exchange, its queues and their consumers."""

    def __init__(self, row: Row, queues: int) -> None:
        self._row = row
        self._broker = MemoryBroker()
        vhost = self._broker.vhost
        self._exchange: Exchange = vhost.declare_exchange("x", row.type, arguments=row.arguments)
        self._recipient = Recipient()
        for number in range(queues):
            queue = vhost.declare_queue(f"q{number}")
            key = f"k{number}" if row.type == "direct" else "1"
            vhost.bind(self._exchange, queue, key)
            self._recipient.consume(queue, f"c{number}", settles=False)
        self._numbers = count()
        self._keys = queues if row.type == "direct" else KNOWN_KEYS
        self._plain = AMQP.header(encode_properties(Properties()))

    def seconds(self, messages: int) -> float:
        """Return the time to publish and deliver these messages."""
        made = list(self._made(messages))
        self._recipient.received.clear()
        self._recipient.log.clear()
        gc.collect()
        start = time.perf_counter()
        for first in range(0, messages, TURN):
            for message in made[first : first + TURN]:
                self._broker.vhost.publish(self._exchange, message)
            self._broker.end_turn()
        return time.perf_counter() - start

    def _made(self, messages: int) -> Iterator[Message]:
        for number in range(messages):
            value = next(self._numbers) if self._row.is_distinct else number % self._keys
            yield Message("x", "" if self._row.header else f"k{value}", self._header(value), b"x" * 100)

    def _header(self, value: int) -> Header:
        if not self._row.header:
            return self._plain
        return AMQP.header(encode_properties(Properties(headers={self._row.header: value})))


def measure(messages: int, queues: int) -> None:
    """Print microseconds per message, and the ratio to direct."""
    for row in ROWS:
        direct, other = Bench(DIRECT, queues), Bench(row, queues)
        for bench in (direct, other):
            bench.seconds(messages)  # fills caches
        both = [(direct.seconds(messages), other.seconds(messages)) for _ in range(ROUNDS)]
        base, cost = (min(times) / messages * 1e6 for times in zip(*both, strict=True))
        print(f"{row.label:45}{base:8.2f} us direct{cost:8.2f} us  ratio {cost / base:.2f}")


def measure_reverse_topic(bindings: int) -> None:
    """Print the time of one route that examines every binding."""
    exchange = ReverseTopic({})
    for number in range(bindings):
        exchange.bind(stand_in_binding(StandIn(str(number)), f"eu.{number % 100}.{number}"))
    start = time.perf_counter()
    exchange.route(plain_message("#.none"))
    print(f"x-rtopic, '#.none' over {bindings:,} bindings: {(time.perf_counter() - start) * 1e3:.2f} ms")


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    measure(numbers[0] if numbers else 20_000, numbers[1] if len(numbers) > 1 else 100)
    measure_reverse_topic(1000)
    measure_reverse_topic(100_000)
