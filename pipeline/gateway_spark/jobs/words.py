"""Words of a command line: durations, names of fields, times, masters."""

import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

from gateway_spark import choices
from gateway_spark.transforms.columns import label_of

T = TypeVar("T")

#: An interval in Spark's words.
_INTERVAL: Final = re.compile(
    r"(interval\s+)?(\d+\s+(microsecond|millisecond|second|minute|hour|day|week)s?(\s+|$))+", re.IGNORECASE
)


def duration_s(text: str) -> float:
    """Read ``30s``, ``15m``, ``2h`` or ``1d``; returns seconds."""
    return _read(choices.duration_s, text)


def interval(text: str) -> str:
    """Read a duration, or an interval in Spark's own words such as ``1 hour``; returns Spark's words."""
    if _INTERVAL.fullmatch(text.strip()):
        return text
    return f"{_read(choices.duration_s, text):g} seconds"


def master(text: str) -> str:
    """Take where Spark is to run."""
    return _read(choices.master, text)


def moment_text(text: str) -> str:
    """Take a time as it is written, once it is known to be one."""
    _read(choices.moment_ms, text)
    return text


def moment(text: str) -> datetime:
    """Read a time: ISO 8601, which is UTC unless it says otherwise, or milliseconds since 1970."""
    return datetime.fromtimestamp(_read(choices.moment_ms, text) / 1000, UTC)


def number(least: float = 0.0) -> Callable[[str], float]:
    """Return what reads a number above ``least``."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = least
        if not value > least:
            raise ArgumentTypeError(f"it must be a number above {least:g}, not '{text}'")
        return value

    return read


def count(text: str) -> int:
    """Read a whole number above 0."""
    return _read(choices.count, text)


def share(text: str) -> float:
    """Read a percentile such as ``95``; returns ``0.95``."""
    value = number()(text) / 100
    if value > 1:
        raise ArgumentTypeError(f"a percentile is 100 at most, not '{text}'")
    return value


def fields(words: Sequence[str]) -> dict[str, str]:
    """Read ``temp=$.t`` or ``$.temp``, which is called ``temp`` then; returns name to path."""
    found = {}
    for word in words:
        name, equals, path = word.partition("=")
        found[name if equals else label_of(word)] = path if equals else word
    return found


def _read(reader: Callable[[str], T], text: str) -> T:
    try:
        return reader(text)
    except ValueError as error:
        raise ArgumentTypeError(f"it must be {error}, not '{text}'") from None
