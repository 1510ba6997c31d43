"""The table of measurements of the gateway alone, each on a fresh broker."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.load.expiry import measure_expiry
from benchmarks.load.figure import Figure
from benchmarks.load.mqtt.reconnect_storm import measure_storm
from benchmarks.load.policy import measure_policy
from benchmarks.load.replay import measure_replay
from benchmarks.load.running import Broker
from benchmarks.load.spark import measure_spark
from benchmarks.micro.matching import measure_matching


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the gateway, measured without a broker around it."""

    name: str
    measure: Callable[[], Sequence[Figure]]


@dataclass(frozen=True, slots=True)
class SoloWorkload:
    """Work beside serving clients, measured on a fresh broker with management."""

    name: str
    measure: Callable[[Broker], Sequence[Figure]]


SOLO_WORKLOADS: Final = (
    SoloWorkload("a million expired messages dead-lettered", measure_expiry),
    SoloWorkload("a policy over 10,000 queues changed", measure_policy),
    SoloWorkload("a stream of a million messages replayed", measure_replay),
    SoloWorkload("a stream of a million messages read into Spark", measure_spark),
    SoloWorkload("mqtt: 5,000 clients with kept sessions reconnect at once", measure_storm),
)

PARTS: Final = (Part("mqtt: a topic matched with 100,000 subscriptions", measure_matching),)
