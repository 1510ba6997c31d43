"""Parsers of command-line words: durations, names of fields, times, masters."""

import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

from gateway_spark import choices
from gateway_spark.errors import OptionError
from gateway_spark.transforms.columns import is_name, label_of

T = TypeVar("T")

#: The units of Spark's syntax in microseconds, the largest first.
_UNITS_US: Final = {
    "week": 7 * 86_400_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1000,
    "microsecond": 1,
}

#: An interval in Spark's syntax, and one of its terms.
_TERM: Final = rf"(\d{{1,18}})\s+({'|'.join(_UNITS_US)})s?(?:\s+|$)"
_INTERVAL: Final = re.compile(rf"(interval\s+)?({_TERM})+", re.IGNORECASE)


def duration_s(text: str) -> float:
    """Parse ``30s``, ``15m``, ``2h`` or ``1d``; return seconds."""
    return _read(choices.duration_s, text)


def delay(text: str) -> str:
    """Parse a duration, or an interval in Spark's syntax such as ``1 hour``; return Spark's syntax.

    The unit is the largest with a whole number: ``5400s`` is ``90 minutes``.
    """
    micros = _micros(text)
    if micros > choices.LONGEST_D * _UNITS_US["day"]:
        raise ArgumentTypeError(f"it must be at most {choices.LONGEST_D}d, not '{text}'")
    unit = next(name for name, size in _UNITS_US.items() if name != "week" and micros % size == 0)
    number = micros // _UNITS_US[unit]
    return f"{number} {unit}{'' if number == 1 else 's'}"


def interval(text: str) -> str:
    """Parse a duration as `delay` does, but not zero."""
    found = delay(text)
    if micros_of(found) == 0:
        raise ArgumentTypeError(f"it must be longer than 0, not '{text}'")
    return found


def micros_of(interval: str) -> int:
    """Return the microseconds of an interval in Spark's syntax."""
    return sum(int(number) * _UNITS_US[unit.lower()] for number, unit in re.findall(_TERM, interval, re.IGNORECASE))


def _micros(text: str) -> int:
    if _INTERVAL.fullmatch(text.strip()):
        return micros_of(text.strip())
    return round(_read(choices.duration_s, text) * 1e6)


def master(text: str) -> str:
    """Parse Spark's master."""
    return _read(choices.master, text, choices.shown)


def moment_text(text: str) -> str:
    """Check a time and return it as written."""
    _read(choices.moment_ms, text)
    return text


def moment(text: str) -> datetime:
    """Parse a time: ISO 8601, in UTC by default, or milliseconds since 1970."""
    return datetime.fromtimestamp(_read(choices.moment_ms, text) / 1000, UTC)


def number(least: float = 0.0) -> Callable[[str], float]:
    """Return a parser of numbers above ``least``."""

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
    """Parse a positive integer."""
    return _read(choices.count, text)


def share(text: str) -> float:
    """Parse a percentile such as ``95``; return ``0.95``."""
    value = number()(text) / 100
    if value > 1:
        raise ArgumentTypeError(f"a percentile is 100 at most, not '{text}'")
    return value


def name(text: str) -> str:
    """Check the name of a value: a column, ``headers.NAME``, or a JSON path into the body."""
    if not is_name(text):
        raise ArgumentTypeError(
            f"it must be a column of messages, headers.NAME or a JSON path such as $.temp, not '{text}'"
        )
    return text


def field(text: str) -> str:
    """Check ``NAME=PATH`` or a path; return it as written."""
    name(text.partition("=")[2] if "=" in text else text)
    return text


def require_labels(by: Sequence[str], others: Collection[str]) -> None:
    """Check that the columns of a device differ from each other and from the other columns of a result.

    :raises OptionError: with the first two names that would be one column.
    """
    name_by_label = {label: f"the column '{label}'" for label in others}
    for each in by:
        label = label_of(each)
        if label in name_by_label:
            raise OptionError(f"--by {each} cannot be told from {name_by_label[label]}: both are named '{label}'")
        name_by_label[label] = f"--by {each}"


def fields(words: Sequence[str]) -> dict[str, str]:
    """Parse ``temp=$.t`` or ``$.temp``, which is then named ``temp``; return name to path."""
    found = {}
    for word in words:
        name, equals, path = word.partition("=")
        found[name if equals else label_of(word)] = path if equals else word
    return found


def _read(reader: Callable[[str], T], text: str, show: Callable[[str], str] = str) -> T:
    try:
        return reader(text)
    except ValueError as error:
        raise ArgumentTypeError(f"it must be {error}, not '{show(text)}'") from None
