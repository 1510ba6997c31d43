"""The cost of queue features, each compared with a plain queue, in the kernel on a store in memory.

    python benchmarks/micro/features.py [messages]

A message is published, waits, is delivered and acknowledged; the last column is the ratio to the plain queue in the
same run. A whole broker spends several times as much on a message, so ratios measured by clients are smaller. Then:
dead letters per second, and the duration of a policy change over many queues, with its longest slice.
"""

import gc
import sys
import time
from collections.abc import Mapping
from heapq import heappop
from typing import Final

from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.message import Header, Message, Properties, Value
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.testing import MemoryBroker
from gateway.testing.clock import FakeClock
from gateway_amqp.header import AMQP
from gateway_amqp.properties import encode_properties

TURN: Final = 100
QUEUES: Final = 10_000
DEAD: Final[dict[str, Value]] = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
KINDS: Final[Mapping[str, dict[str, Value]]] = {
    "plain": {},
    "TTL": {"x-message-ttl": 3_600_000},
    "max-length": {"x-max-length": 10_000_000, "x-max-length-bytes": 10_000_000_000},
    "reject-publish": {"x-max-length": 10_000_000, "x-overflow": "reject-publish"},
    "DLX": DEAD,
    "delivery limit": {"x-delivery-limit": 20},
    "lease": {"x-expires": 3_600_000},
    "TTL + max-length + DLX": {"x-message-ttl": 3_600_000, "x-max-length": 10_000_000, **DEAD},
    "10 priorities": {"x-max-priority": 10},
}


class RunningClock(FakeClock):
    """Makes calls on request, but returns real time, so that slices end normally and can be measured."""

    def __init__(self) -> None:
        super().__init__(beginning_ms=time.time_ns() // 1_000_000)
        self.slices_s: list[float] = []
        self.ahead_ms = 0

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000 + self.ahead_ms

    def monotonic_s(self) -> float:
        return time.monotonic()

    def run_one(self) -> None:
        """Make the next scheduled call, regardless of its time; record its duration."""
        if self._due:
            call = heappop(self._due)[2]
            start = time.thread_time()
            call.ring()
            self.slices_s.append(time.thread_time() - start)


def header(is_persistent: bool) -> Header:
    return AMQP.header(
        encode_properties(Properties(delivery_mode=2 if is_persistent else 1, content_type="text/plain"))
    )


def microseconds_per_message(arguments: dict[str, Value], messages: int, is_persistent: bool) -> float:
    broker = MemoryBroker(clock=RunningClock(), resident_messages=10_000_000)
    vhost = broker.vhost
    queue = vhost.declare_queue("q", is_durable=True, arguments=arguments)
    vhost.declare_queue("dead", is_durable=True)
    message_header = header(is_persistent)
    gc.collect()
    start = time.perf_counter()
    for _ in range(messages // TURN):
        for _ in range(TURN):
            vhost.publish(vhost.default_exchange, Message("", "q", message_header, b"x" * 100))
        for _ in range(TURN):
            entry = queue.take()
            assert entry is not None
            queue.accept(entry)
        broker.commit()
    return (time.perf_counter() - start) / messages * 1e6


def dead_letters_a_second(messages: int) -> tuple[float, float]:
    """Return how many expired messages move to another queue a second, and the longest slice in milliseconds."""
    clock = RunningClock()
    broker = MemoryBroker(clock=clock)
    broker.kernel.journal.formats = {AMQP.name: AMQP}
    vhost = broker.vhost
    vhost.declare_queue("q", is_durable=True, arguments={"x-message-ttl": 60_000, **DEAD})
    dead = vhost.declare_queue("dead", is_durable=True)
    message_header = header(True)
    for number in range(messages):
        vhost.publish(vhost.default_exchange, Message("", "q", message_header, b"x" * 100))
        if number % TURN == 0:
            broker.commit()
    broker.commit()
    clock.ahead_ms = 120_000
    gc.collect()
    gc.freeze()
    start = time.perf_counter()
    while len(dead) < messages:
        clock.run_one()
        broker.commit()
    return messages / (time.perf_counter() - start), max(clock.slices_s) * 1000


def policy_change(vhost: VirtualHost, broker: MemoryBroker, clock: RunningClock, ttl_ms: int) -> tuple[float, float]:
    """Return the reactor seconds of a change, and its longest slice in milliseconds."""
    clock.slices_s.clear()
    gc.collect()
    gc.freeze()  # as the server does after its start
    start = time.thread_time()
    broker.kernel.put_policy(PolicyRecord("/", "p", False, "^q", "queues", 1, {"message-ttl": ttl_ms}))
    clock.slices_s.append(time.thread_time() - start)
    while any(queue.settings.number("message-ttl") != ttl_ms for queue in vhost.queue_by_name.values()):
        clock.run_one()
    return sum(clock.slices_s), max(clock.slices_s) * 1000


def main(messages: int) -> None:
    for is_persistent in (False, True):
        print("persistent" if is_persistent else "transient")
        plain = min(microseconds_per_message({}, messages, is_persistent) for _ in range(3))
        for name, arguments in KINDS.items():
            taken = min(microseconds_per_message(arguments, messages, is_persistent) for _ in range(3))
            print(f"  {name:24} {taken:7.2f} us {taken / plain:6.2f}")
    rate, longest_ms = dead_letters_a_second(messages * 5)
    print(f"expired messages moved    {rate:9.0f} a second, longest slice {longest_ms:.0f} ms")
    clock = RunningClock()
    broker = MemoryBroker(clock=clock)
    for number in range(QUEUES):
        broker.vhost.declare_queue(f"q{number}", is_durable=True)
        broker.publish(f"q{number}", b"m")
    for ttl_ms in (3_600_000, 7_200_000):
        whole_s, longest_ms = policy_change(broker.vhost, broker, clock, ttl_ms)
        print(f"policy over {QUEUES} queues {whole_s:9.3f} s, longest slice {longest_ms:.0f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40_000)
