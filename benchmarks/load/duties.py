"""What the gateway owes by itself, as a table: one row a measurement, each on a broker of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.load.expiry import measure_expiry
from benchmarks.load.figure import Figure
from benchmarks.load.policy import measure_policy
from benchmarks.load.running import Broker


@dataclass(frozen=True, slots=True)
class Duty:
    """Work beside serving clients, measured on a fresh broker with management."""

    name: str
    measure: Callable[[Broker], Sequence[Figure]]


DUTIES: Final = (
    Duty("a million expired messages dead-lettered", measure_expiry),
    Duty("a policy over 10,000 queues changed", measure_policy),
)
