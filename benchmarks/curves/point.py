"""One point of a curve."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """Figures at one size ``at``: messages a second, and CPU of the broker in microseconds a message.

    ``resident_bytes`` is the broker's memory before the messages, with all that ``at`` counts.
    """

    at: int
    rate: float
    cpu_us: float
    resident_bytes: int
