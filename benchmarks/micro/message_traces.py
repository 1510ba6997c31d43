"""The cost of traces of messages: plain, with traces off again after use, and at full sampling, side by side.

    python benchmarks/micro/message_traces.py [messages]

A transient message of 100 bytes is published over AMQP's header format, delivered to a consumer, recorded as delivered,
and acknowledged at once, in the kernel on a store in memory. The three take turns, and the best of several rounds
counts. A whole broker spends several times as much on a message, so its ratio is smaller.
"""

import gc
import sys
import time
from typing import Final

from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.consumer import Consumer
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.testing import MemoryBroker, Recipient
from gateway.testing.broker import header_of

TURN: Final = 100
ROUNDS: Final = 7
ORIGIN: Final = Origin("client", 1, "guest", "amqp091")


class Accepting(Recipient):
    """Accepts each delivery at once, and reports it to the tracing, as the adapters do."""

    broker: MemoryBroker

    def deliver(self, consumer: Consumer, message: Message, redelivered: bool, entry: QueuedMessage | None) -> None:
        """Accept a delivery."""
        tracing = self.broker.vhost.tracing
        if tracing is not None:
            tracing.delivered(message, consumer.queue, redelivered, ORIGIN, entry)
        assert entry is not None
        self.broker.vhost.queue("q").settle(entry, DeliveryOutcome.ACCEPTED)


def prepared(sample: float, *, was_on: bool = False) -> MemoryBroker:
    """Return a broker with a queue and its consumer."""
    broker = MemoryBroker()
    if was_on:
        broker.kernel.trace_messages("/", 1)
    broker.kernel.trace_messages("/", sample)
    recipient = Accepting()
    recipient.broker = broker
    recipient.consume(broker.vhost.declare_queue("q"))
    return broker


def seconds(broker: MemoryBroker, messages: int) -> float:
    """Return the time of this many messages."""
    vhost, header, body = broker.vhost, header_of(), b"x" * 100
    exchange = vhost.default_exchange
    gc.collect()
    starts_s = time.perf_counter()
    for number in range(messages):
        vhost.publish(exchange, Message("", "q", header, body), ORIGIN)
        if number % TURN == 0:
            broker.commit()
    return time.perf_counter() - starts_s


def main() -> None:
    """Print the time of a message in each case, and its ratio to the plain one."""
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    cases = {"plain": prepared(0), "traces off after use": prepared(0, was_on=True), "every message": prepared(1)}
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(ROUNDS):
        for name, broker in cases.items():
            best[name] = min(best[name], seconds(broker, messages) / messages)
    for name, time_s in best.items():
        print(f"{name:22} {time_s * 1e6:6.2f} us a message   {time_s / best['plain']:.2f}")


if __name__ == "__main__":
    main()
