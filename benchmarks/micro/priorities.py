"""The cost of priorities: queues with 2, 10 and 255 levels compared with a plain one, in the kernel on a store in
memory.

    python benchmarks/micro/priorities.py [messages]

Messages of every priority are published, wait, are delivered and acknowledged. In the first table few wait at a
time; in the second all of them wait before the first delivery, so that contents are paged out and in. Each kind
alternates with the plain queue, and the best of several rounds counts. The last table is the cost of delays: all
messages are delayed, then released. Times are microseconds per message.
"""

import gc
import resource
import sys
import time
from collections.abc import Mapping
from typing import Final

from gateway.kernel.messages.message import Header, Message, Properties, Value
from gateway.testing import FakeClock, MemoryBroker
from gateway_amqp.header import AMQP
from gateway_amqp.properties import encode_properties

ROUNDS: Final = 5
TURN: Final = 100
BODY: Final = b"x" * 100
KINDS: Final[Mapping[str, dict[str, Value]]] = {
    "2 levels": {"x-max-priority": 2},
    "10 levels": {"x-max-priority": 10},
    "255 levels": {"x-max-priority": 255},
}


def headers() -> list[Header]:
    """Return one header for each of ten priorities, and one for each of the others."""
    return [AMQP.header(encode_properties(Properties(delivery_mode=2, priority=priority))) for priority in range(11)]


def run(arguments: dict[str, Value], messages: int, waiting: int) -> float:
    """Return the microseconds per message while up to this many wait."""
    broker = MemoryBroker()
    broker.kernel.journal.formats = {AMQP.name: AMQP}
    vhost = broker.vhost
    queue = vhost.declare_queue("q", is_durable=True, arguments=arguments)
    message_headers = headers()
    gc.collect()
    start = time.perf_counter()
    for _ in range(messages // waiting):
        for number in range(waiting):
            vhost.publish(vhost.default_exchange, Message("", "q", message_headers[number % 11], BODY))
            if number % TURN == 0:
                broker.commit()
        for number in range(waiting):
            entry = queue.take()
            assert entry is not None
            queue.accept(entry)
            if number % TURN == 0:
                broker.commit()
    return (time.perf_counter() - start) / messages * 1e6


def compare(messages: int, waiting: int) -> None:
    """Print each kind of queue compared with the plain one."""
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, arguments in {"plain": {}, **KINDS}.items():
            best[name] = min(best.get(name, 1e9), run(arguments, messages, waiting))
    print(f"{waiting} waiting at a time")
    for name, taken in best.items():
        print(f"  {name:12} {taken:7.2f} us  {taken / best['plain']:5.2f} times plain")


def delays(messages: int) -> None:
    """Print the cost of delaying and releasing messages, and the memory of each one meanwhile."""
    clock = FakeClock()
    broker = MemoryBroker(clock=clock)
    broker.kernel.journal.formats = {AMQP.name: AMQP}
    vhost = broker.vhost
    queue = vhost.declare_queue("q", is_durable=True, arguments={"x-delayed-delivery": True})
    message_headers = AMQP.header(encode_properties(Properties(delivery_mode=2, headers={"x-delay": 60_000})))
    start = time.perf_counter()
    for number in range(messages):
        vhost.publish(vhost.default_exchange, Message("", "q", message_headers, BODY))
        if number % TURN == 0:
            broker.commit()
    held = time.perf_counter()
    soon = AMQP.header(encode_properties(Properties(delivery_mode=2, headers={"x-delay": 1})))
    vhost.publish(vhost.default_exchange, Message("", "q", soon, BODY))
    broker.commit()
    before_one = time.perf_counter()
    clock.advance(0.001)
    one = time.perf_counter()
    clock.advance(60)
    broker.commit()
    all_gone = time.perf_counter()
    assert len(queue) == messages + 1
    print(f"{messages} messages delayed")
    print(f"  {'delay':12} {(held - start) / messages * 1e6:7.2f} us")
    print(f"  {'one due':12} {(one - before_one) * 1e6:7.2f} us")
    print(f"  {'all due':12} {(all_gone - one) / messages * 1e6:7.2f} us")
    print(f"  peak of the process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def main(messages: int) -> None:
    compare(messages, 1000)
    compare(messages, messages)
    delays(messages)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
