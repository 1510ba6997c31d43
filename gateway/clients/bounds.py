"""Times and numbers of programs, within the bounds of the broker."""

from datetime import timedelta
from typing import Final, TypeAlias

Seconds: TypeAlias = float | timedelta
"""A time: seconds, or a ``timedelta``."""

#: Ten years, the longest time that the broker takes.
_LONGEST_MS: Final = 315_360_000_000

#: The largest integer of AMQP.
LARGEST: Final = 2**63 - 1


def milliseconds(name: str, value: Seconds, least: int = 0) -> int:
    """Return a time in whole milliseconds.

    :raises ValueError: if it is less than ``least``, between 0 and 1 ms, more than ten years, or no number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | timedelta):
        raise ValueError(f"{name} must be a time in seconds, not {value!r}")
    found = (value.total_seconds() if isinstance(value, timedelta) else value) * 1000
    if not least <= found <= _LONGEST_MS or 0 < found < 1:
        raise ValueError(f"{name} must be a time of {least} ms to ten years, not {value!r}")
    return round(found)


def number(name: str, value: int, least: int, most: int = LARGEST) -> int:
    """Return a number. :raises ValueError: if it is out of these bounds, or no integer."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name} must be {least} to {most}, not {value!r}")
    return value
