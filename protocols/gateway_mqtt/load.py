"""Load averages: events per minute over one, five and fifteen minutes, calculated as in Mosquitto.

An average is an exponential moving average: each update adds ``1 - exp(-elapsed / span)`` of the difference to the
current rate, so no history is kept. It starts at ``0.00``.
"""

from collections.abc import Mapping
from math import exp
from typing import Final

#: The spans of the averages in seconds, by their names in topics.
SPANS: Final[Mapping[str, float]] = {"1min": 60.0, "5min": 300.0, "15min": 900.0}


class Load:
    """The averages of one counter. ``per_minute`` is keyed by the names of ``SPANS``."""

    __slots__ = ("_total", "per_minute")

    def __init__(self) -> None:
        self.per_minute = dict.fromkeys(SPANS, 0.0)
        self._total = 0

    def update(self, total: int, elapsed_s: float) -> None:
        """Update the averages with the counter's ``total``, ``elapsed_s`` after the last update."""
        rate = (total - self._total) * 60.0 / elapsed_s
        self._total = total
        for name, span_s in SPANS.items():
            self.per_minute[name] = rate + exp(-elapsed_s / span_s) * (self.per_minute[name] - rate)
