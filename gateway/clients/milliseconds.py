"""Times of programs as milliseconds of the broker."""

from datetime import timedelta
from typing import TypeAlias

Seconds: TypeAlias = float | timedelta
"""A time: seconds, or a ``timedelta``."""


def milliseconds(name: str, value: Seconds, least: int = 0) -> int:
    """Return a time in whole milliseconds. :raises ValueError: if it is less than ``least``, infinite or no number."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not least <= seconds * 1000 < 2**63:
        raise ValueError(f"{name} must be a time of {least} ms or more, not {value!r}")
    return round(seconds * 1000)


def positive(name: str, value: int) -> int:
    """Return a number. :raises ValueError: if it is less than 1."""
    if value < 1:
        raise ValueError(f"{name} must be 1 or more, not {value!r}")
    return value
