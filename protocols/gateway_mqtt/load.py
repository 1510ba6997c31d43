"""How much goes on: events in a minute, averaged over the last one, five and fifteen, as Mosquitto works it out.

An average moves towards the rate since the last look: by ``1 - exp(-elapsed / span)`` of the difference, so that what
was longer ago counts less and nothing has to be remembered. It says ``0.00`` of a broker that has just begun.
"""

from collections.abc import Mapping
from math import exp
from typing import Final

#: The spans that averages are over, in seconds, by the name of their topics.
SPANS: Final[Mapping[str, float]] = {"1min": 60.0, "5min": 300.0, "15min": 900.0}


class Load:
    """The averages of one number that only grows. ``per_minute`` is by the names of ``SPANS``."""

    __slots__ = ("_total", "per_minute")

    def __init__(self) -> None:
        self.per_minute = dict.fromkeys(SPANS, 0.0)
        self._total = 0

    def reach(self, total: int, elapsed_s: float) -> None:
        """Hear how many events there were since the start, ``elapsed_s`` after hearing so the last time."""
        rate = (total - self._total) * 60.0 / elapsed_s
        self._total = total
        for name, span_s in SPANS.items():
            self.per_minute[name] = rate + exp(-elapsed_s / span_s) * (self.per_minute[name] - rate)
