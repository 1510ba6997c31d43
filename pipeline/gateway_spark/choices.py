"""What an option may be: one reader for each kind of value, and one line that says what is allowed when it is not."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from gateway_spark.errors import OptionError

Reader: TypeAlias = Callable[[str], Any]
"""Reads the text of an option; raises ``ValueError`` with what is allowed."""

_UNITS_S: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION: Final = re.compile(r"(\d+)\s*(ms|s|m|h|d)")
_MASTER: Final = re.compile(r"local(-cluster)?(\[[^]]+])?|yarn|(spark|k8s)://\S+")


def text(value: str) -> str:
    """Take anything but nothing."""
    if not value:
        raise ValueError("a name that is not empty")
    return value


def flag(value: str) -> bool:
    """Read ``true`` or ``false``."""
    if value.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return value.lower() == "true"


def count(value: str) -> int:
    """Read a whole number above 0."""
    if not value.isascii() or not value.isdigit() or int(value) < 1:
        raise ValueError("a whole number from 1")
    return int(value)


def duration_s(value: str) -> float:
    """Read ``500ms``, ``30s``, ``15m``, ``2h`` or ``1d``; returns seconds."""
    match = _DURATION.fullmatch(value.strip())
    if match is None:
        raise ValueError("a number with ms, s, m, h or d, such as 15m")
    return int(match[1]) * _UNITS_S[match[2]]


def moment_ms(value: str) -> int:
    """Read a time: milliseconds since the epoch, or ISO 8601, which is UTC unless it says otherwise.

    Returns milliseconds; what is finer counts up to the next of them, so that a bound never takes in too much.
    """
    if re.fullmatch(r"\d+", value):
        return int(value)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("milliseconds since 1970, or ISO 8601 such as 2026-01-31T12:00:00Z") from None
    return ceil_ms(moment)


def ceil_ms(moment: datetime) -> int:
    """Return the first millisecond since the epoch that is not before a moment; one without a zone is UTC."""
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    micros = (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds
    return -(-micros // 1000)


def names(value: str) -> tuple[str, ...]:
    """Read names with commas between them, or a list in JSON where names have commas themselves."""
    found = _json_names(value) if value.lstrip().startswith("[") else [name.strip() for name in value.split(",")]
    if not found or not all(found):
        raise ValueError("names with commas between them, or a list of names in JSON")
    return tuple(dict.fromkeys(found))


def master(value: str) -> str:
    """Take where Spark is to run. What is none, Spark would answer with the traceback of a Java program."""
    if _MASTER.fullmatch(value) is None:
        raise ValueError("local[N], spark://host:port, yarn or k8s://...")
    return value


def pattern(value: str) -> str:
    """Take a regular expression."""
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from None
    return text(value)


def one_of(*allowed: str) -> Reader:
    """Take one of some words."""

    def read(value: str) -> str:
        if value not in allowed:
            raise ValueError(", ".join(allowed[:-1]) + f" or {allowed[-1]}")
        return value

    return read


def read(option: str, value: str, reader: Reader) -> Any:
    """Read an option. :raises OptionError: naming it, what is allowed and what was there."""
    try:
        return reader(value)
    except ValueError as error:
        raise OptionError(f"option '{option}' must be {error}, not '{value}'") from None


def _json_names(value: str) -> list[str]:
    try:
        found = json.loads(value)
    except ValueError:
        return []
    return found if isinstance(found, list) and all(isinstance(name, str) for name in found) else []
