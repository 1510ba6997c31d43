"""The cost of interceptors that do nothing, on the way of an AMQP message of 100 bytes through the broker's machine.

    python -m benchmarks.micro.interceptors [messages]

A publisher sends batches, a consumer without acknowledgements receives them. There are no sockets, so the ratios are
higher than those that clients see. Batches alternate between none, one and three interceptors, so that a slow moment
affects all alike; the medians are compared.
"""

import gc
import sys
import time
from collections.abc import Sequence
from statistics import median
from typing import Final

from pamqp import commands

from gateway.api import Decision, Interceptor, Message, Origin
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frames import publish, wire

#: The most that three interceptors that do nothing may cost, as a ratio.
LIMIT: Final = 1.15

BATCH: Final = 200


class Idle(Interceptor):
    """Looks at each publish and changes nothing."""

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        return message


CASES: Final[Sequence[int]] = (0, 1, 3)


def measure(messages: int) -> dict[int, float]:
    """Return the median time of a message in seconds by the number of interceptors."""
    gateway = Gateway()
    publisher, consumer = gateway.connect(), gateway.connect()
    consumer.send(commands.Queue.Declare(0, "q"), commands.Basic.Consume(0, "q", no_ack=True)).receive()
    batch = wire(publish("", "q", b"x" * 100)) * BATCH
    times: dict[int, list[float]] = {count: [] for count in CASES}
    gc.collect()
    gc.freeze()
    for _ in range(messages // BATCH // len(CASES)):
        for count in CASES:
            gateway.vhost.interception.apply([Idle() for _ in range(count)])
            times[count].append(_timed(gateway, publisher, consumer, batch))
    return {count: median(each) / BATCH for count, each in times.items()}


def _timed(gateway: Gateway, publisher: Peer, consumer: Peer, batch: bytes) -> float:
    starts_s = time.thread_time()
    publisher.machine.receive(batch)
    gateway.end_turn()
    seconds = time.thread_time() - starts_s
    consumer.receive_frames()
    return seconds


def main(messages: int = 60_000) -> None:
    """Print the times and the ratios."""
    times = measure(messages)
    for count, seconds in times.items():
        print(f"{count} interceptors  {seconds * 1e6:6.2f} us a message  {seconds / times[0]:5.2f}")
    print(f"limit for 3: {LIMIT}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
