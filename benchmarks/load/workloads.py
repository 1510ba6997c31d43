"""The table of AMQP workloads, one row each."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

#: Protocols, by the names of their listeners in the settings.
AMQP, MQTT, STOMP, WEB_STOMP = "amqp", "mqtt", "stomp", "web_stomp"


class Shape(Enum):
    """The topology between publishers and consumers."""

    PAIR = "1 to 1"
    FOUR_PAIRS = "4 to 4 over 4 queues"
    FANOUT = "fanout 1 to 10"
    TOPIC = "topic, 1,000 bindings"
    HEADERS = "headers, 100 bindings of two headers"
    OVERFLOW = "a full queue that dead-letters its head to another one"


class Measure(Enum):
    """The compared figure of a workload."""

    #: Many messages in flight: compares broker CPU per message.
    STREAM = "stream"
    #: Messages wait, a window at a time, before a consumer starts: compares broker CPU per message.
    WAITING = "waiting"
    #: One message outstanding, publish to delivery: compares the median time.
    ROUND_TRIP = "round trip"
    #: One message outstanding, publish to confirm, without a consumer: compares the median time.
    CONFIRM_ROUND_TRIP = "confirm round trip"
    #: All publishers send a window of messages, all subscribers receive them, then the next round: compares broker
    #: CPU per message.
    ROUNDS = "rounds"
    #: A publisher retains a message in each of many new topics, a window at a time: compares broker CPU per message.
    RETAINING = "retaining"

    @property
    def is_of_time(self) -> bool:
        """Return whether the time of a message is compared, and not its cost."""
        return self in (Measure.ROUND_TRIP, Measure.CONFIRM_ROUND_TRIP)


@dataclass(frozen=True, slots=True)
class QueueKind:
    """The features of a queue: the arguments of its declaration."""

    name: str
    arguments: tuple[tuple[str, str | int], ...] = ()


PLAIN: Final = QueueKind("plain")


@dataclass(frozen=True, slots=True)
class Workload:
    """One row: the messages, their acknowledgement, and the required factor over the peer, 0 for none.

    ``ack_every`` is 0 for automatic acknowledgement, 1 for a basic.ack each, n for one of n deliveries together.
    ``window`` bounds the messages in flight of each publisher. Messages have the ``priorities`` in turn, if any;
    ``correlated`` messages have a unique correlation-id each, so that all headers differ. In rounds there are
    ``publishers`` and ``subscribers``, and messages have a ``qos``.
    """

    name: str
    body_bytes: int
    window: int
    required: float
    ack_every: int = 0
    confirms: bool = False
    persistent: bool = False
    shape: Shape = Shape.PAIR
    measure: Measure = Measure.STREAM
    queue: QueueKind = PLAIN
    priorities: tuple[int, ...] = ()
    correlated: bool = False
    protocol: str = AMQP
    qos: int = 0
    publishers: int = 1
    subscribers: int = 1


#: Messages in flight: enough that neither side waits for the other.
TRANSIENT: Final = 20_000
LARGE: Final = 200
#: Several queues share the window.
PER_PAIR: Final = TRANSIENT // 4
FANOUT: Final = TRANSIENT // 10
#: Deliveries covered by one basic.ack in bulk.
BULK: Final = 100

#: The required factors: throughput per CPU second over the peer, and round trips no slower than the peer's.
REQUIRED_TRANSIENT, REQUIRED_PERSISTENT, REQUIRED_ROUND_TRIP = 4.0, 3.0, 1.0

WORKLOADS: Final = (
    Workload("auto-ack 100 B", 100, TRANSIENT, REQUIRED_TRANSIENT),
    Workload("auto-ack 1 KiB", 1024, TRANSIENT, REQUIRED_TRANSIENT),
    Workload("auto-ack 64 KiB", 65_536, LARGE, REQUIRED_TRANSIENT),
    Workload("ack each 100 B", 100, TRANSIENT, REQUIRED_TRANSIENT, ack_every=1),
    Workload("ack each 1 KiB", 1024, TRANSIENT, REQUIRED_TRANSIENT, ack_every=1),
    Workload("ack multiple 100 B", 100, TRANSIENT, REQUIRED_TRANSIENT, ack_every=BULK),
    Workload("ack multiple 1 KiB", 1024, TRANSIENT, REQUIRED_TRANSIENT, ack_every=BULK),
    Workload("confirms 100 B", 100, TRANSIENT, REQUIRED_TRANSIENT, confirms=True),
    Workload("confirms 1 KiB", 1024, TRANSIENT, REQUIRED_TRANSIENT, confirms=True),
    Workload("4 to 4 auto-ack 100 B", 100, PER_PAIR, REQUIRED_TRANSIENT, shape=Shape.FOUR_PAIRS),
    Workload("4 to 4 ack multiple 1 KiB", 1024, PER_PAIR, REQUIRED_TRANSIENT, ack_every=BULK, shape=Shape.FOUR_PAIRS),
    Workload("fanout 1 to 10 auto-ack 100 B", 100, FANOUT, REQUIRED_TRANSIENT, shape=Shape.FANOUT),
    Workload("topic 1,000 bindings auto-ack 100 B", 100, TRANSIENT, REQUIRED_TRANSIENT, shape=Shape.TOPIC),
    Workload("headers 100 bindings auto-ack 100 B", 100, TRANSIENT, REQUIRED_TRANSIENT, shape=Shape.HEADERS),
    Workload(
        "headers 100 bindings auto-ack 100 B, correlated",
        100,
        TRANSIENT,
        REQUIRED_TRANSIENT,
        shape=Shape.HEADERS,
        correlated=True,
    ),
    Workload("overflow dead-lettered 100 B", 100, TRANSIENT, REQUIRED_TRANSIENT, shape=Shape.OVERFLOW),
    Workload(
        "overflow dead-lettered 100 B, correlated",
        100,
        TRANSIENT,
        REQUIRED_TRANSIENT,
        shape=Shape.OVERFLOW,
        correlated=True,
    ),
    Workload("persistent 100 B window 5000", 100, 5000, REQUIRED_PERSISTENT, BULK, confirms=True, persistent=True),
    Workload("persistent 1 KiB window 5000", 1024, 5000, REQUIRED_PERSISTENT, BULK, confirms=True, persistent=True),
    Workload("persistent 1 KiB window 200", 1024, 200, REQUIRED_PERSISTENT, BULK, confirms=True, persistent=True),
    Workload("round trip 100 B", 100, 1, REQUIRED_ROUND_TRIP, measure=Measure.ROUND_TRIP),
    Workload(
        "persistent confirm round trip 1 KiB",
        1024,
        1,
        REQUIRED_ROUND_TRIP,
        confirms=True,
        persistent=True,
        measure=Measure.CONFIRM_ROUND_TRIP,
    ),
)
