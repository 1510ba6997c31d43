"""The cost of routing a message with a new topic among 100,000 MQTT subscriptions.

    python -m benchmarks.micro.matching

Two lookups are measured for each message: the queues it is routed to, by the index of ``amq.topic``; and the
options with which a session receives it, from its own subscriptions, which is immediate if all of them have the
same QoS. Both cache by topic, so every topic is used only once. Messages are created right before the lookup, as if
they had just arrived; the indexes are not in the processor's cache.
"""

import gc
import random
from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Final, TypeVar

from benchmarks.load.figure import Figure, at_most
from gateway.kernel.journal.records.sessions import SubscriptionRecord
from gateway.kernel.messages.message import Message
from gateway.kernel.sessions.session import Session
from gateway.testing import MemoryBroker
from gateway_mqtt.translation.header import mqtt_header
from gateway_mqtt.translation.topics import REVERSIBLE

T = TypeVar("T")

SITES: Final = 10_000
#: The subscriptions of each site's dashboard; a message of its boiler matches four of these.
FILTERS: Final = (
    "site/{}/boiler/temperature",
    "site/{}/+/temperature",
    "site/{}/boiler/+",
    "+/{}/boiler/temperature",
    "site/{}/pump/#",
    "site/{}/pump/+/speed",
    "site/{}/+/+/alarm",
    "site/{}/fire/#",
    "+/{}/+/status",
    "plant/+/{}/status",
)
TOPIC: Final = "site/{}/boiler/temperature"
#: Required microseconds per topic.
REQUIRED_US: Final = 5.0
#: Topics timed together; the median of these times is reported.
AT_A_TIME: Final = 500


class Dashboard:
    """The owner of the sessions, which are never connected."""

    def displaced(self) -> None:
        """The session was taken over; do nothing."""

    def force_close(self, reason: str) -> None:
        """An operator closed the connection; do nothing."""


def measure_matching() -> Sequence[Figure]:
    """Subscribe, look up each site's topic once in random order, and report the times of both lookups."""
    broker = MemoryBroker()
    sessions = _subscribe(broker)
    sites = list(range(SITES))
    random.Random(4).shuffle(sites)
    for session in sessions:
        session.subscriptions.terms("")  # builds its index
    exchange, header = broker.vhost.exchange("amq.topic"), mqtt_header(0, False, False, "boiler", b"")
    gc.collect()
    gc.freeze()
    finding_us = _time(
        sites,
        lambda site: Message(exchange.name, _key(site), header, b""),
        lambda message: tuple(exchange.type.route(message)),
    )
    alike_us, mixed_us = (
        _time(
            [site for site in sites if site % 2 == odd],
            lambda site: (sessions[site].subscriptions, _key(site)),
            lambda asked: asked[0].terms_of_a_match(asked[1]),
        )
        for odd in (0, 1)
    )
    gc.unfreeze()
    return [
        Figure("µs, finding its queues", f"{finding_us:.1f}"),
        at_most("µs, and the terms of a session of one QoS", finding_us + alike_us, REQUIRED_US, digits=1),
        at_most("µs, and the terms of a session of several QoS", finding_us + mixed_us, REQUIRED_US, digits=1),
    ]


def _subscribe(broker: MemoryBroker) -> Sequence[Session]:
    """Create the sessions; in every other one some subscriptions have QoS 1 and some QoS 0."""
    sessions = []
    exchange = broker.vhost.exchange("amq.topic")
    for site in range(SITES):
        session, _ = broker.vhost.sessions.open(f"dashboard-{site}", True, 0, Dashboard())
        for number, pattern in enumerate(FILTERS):
            topic_filter = pattern.format(site)
            key = REVERSIBLE.binding_key(topic_filter)
            qos = site % 2 * number % 2
            session.subscribe(exchange, SubscriptionRecord("/", session.client_id, topic_filter, "", key, qos))
        sessions.append(session)
    return sessions


def _key(site: int) -> str:
    return REVERSIBLE.routing_key(TOPIC.format(site))


def _time(sites: Sequence[int], make: Callable[[int], T], ask: Callable[[T], object]) -> float:
    """Return the microseconds of one lookup for the object created for a site."""
    times = []
    for start in range(0, len(sites), AT_A_TIME):
        things = [make(site) for site in sites[start : start + AT_A_TIME]]
        begin = perf_counter()
        for thing in things:
            ask(thing)
        times.append((perf_counter() - begin) * 1e6 / AT_A_TIME)
    return median(times)


if __name__ == "__main__":
    for figure in measure_matching():
        print(f"{figure.name}: {figure.measured} {figure.required}")
