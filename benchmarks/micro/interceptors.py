"""The cost of interceptors, on the way of an AMQP message of 100 bytes with three headers through the broker's machine.

    python -m benchmarks.micro.interceptors [messages]

A publisher sends batches, a consumer without acknowledgements receives them. There are no sockets, so the ratios are
higher than those that clients see. Batches alternate between the cases, so that a slow moment affects all alike; the
medians are compared. The last rows are built-in interceptors that change a header.
"""

import gc
import sys
import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from pamqp import commands

from gateway.api import Decision, Interceptor, Message, Origin, Properties
from gateway.plugins.registry import load_plugins
from tests.protocols.amqp.dialogue import Gateway, Peer
from tests.protocols.amqp.frames import publish, wire

#: The most that three interceptors that do nothing may cost, as a ratio.
LIMIT: Final = 1.15

BATCH: Final = 200


class Idle(Interceptor):
    """Looks at each publish and changes nothing."""

    def on_publish(self, message: Message, origin: Origin) -> Decision:
        return message


class ByHeader(Idle):
    """The same, declared to decide by the header."""

    decides_by_header = True


class Vhost:
    """The virtual host of the built-in interceptors."""

    name = "/"
    node = "gateway@here"

    def publish(self, exchange: str, routing_key: str, properties: Properties, body: bytes) -> None:
        """Publish nothing."""


def _built_in(name: str) -> Sequence[Interceptor]:
    return load_plugins().view("/", {name: {}}).interceptors(Vhost())


CASES: Final[Mapping[str, Sequence[Interceptor]]] = {
    "none": (),
    "one that does nothing": (Idle(),),
    "three that do nothing": (Idle(), Idle(), Idle()),
    "three that decide by the header": (ByHeader(), ByHeader(), ByHeader()),
    "interceptor-routing-node": _built_in("interceptor-routing-node"),
    "interceptor-timestamp": _built_in("interceptor-timestamp"),
}


def measure(messages: int) -> dict[str, float]:
    """Return the median time of a message in seconds by the case."""
    gateway = Gateway()
    publisher, consumer = gateway.connect(), gateway.connect()
    consumer.send(commands.Queue.Declare(0, "q"), commands.Basic.Consume(0, "q", no_ack=True)).receive()
    headers = {"customer": "acme", "number": 7, "urgent": True}
    batch = wire(publish("", "q", b"x" * 100, headers=headers)) * BATCH
    times: dict[str, list[float]] = {case: [] for case in CASES}
    gc.collect()
    gc.freeze()
    for _ in range(messages // BATCH // len(CASES)):
        for case, interceptors in CASES.items():
            gateway.vhost.interception.apply(interceptors)
            times[case].append(_timed(gateway, publisher, consumer, batch))
    return {case: median(each) / BATCH for case, each in times.items()}


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
    for case, seconds in times.items():
        print(f"{case:26} {seconds * 1e6:6.2f} us a message  {seconds / times['none']:5.2f}")
    print(f"limit for three that do nothing: {LIMIT}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
