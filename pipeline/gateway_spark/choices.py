"""Parsers of option values, one for each kind. An invalid value's error lists the permitted ones."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from gateway_spark.errors import OptionError

Reader: TypeAlias = Callable[[str], Any]
"""Parses the text of an option; raises ``ValueError`` with the permitted values."""

_UNITS_S: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION: Final = re.compile(r"(\d{1,18})\s*(ms|s|m|h|d)")

#: The longest duration, a hundred years: Spark counts intervals in microseconds, and dates end in the year 9999.
LONGEST_D: Final = 36_500
_BROKER: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MASTER: Final = re.compile(r"local(-cluster)?(\[[^]]+])?|yarn|(spark|k8s|sc)://\S+")


def text(value: str) -> str:
    """Parse any non-empty text."""
    if not value:
        raise ValueError("a name that is not empty")
    return value


def flag(value: str) -> bool:
    """Parse ``true`` or ``false``."""
    if value.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return value.lower() == "true"


def count(value: str) -> int:
    """Parse a positive integer."""
    return _whole_number(value, 1)


def count_or_zero(value: str) -> int:
    """Parse an integer from 0."""
    return _whole_number(value, 0)


def _whole_number(value: str, least: int) -> int:
    if not value.isascii() or not value.isdigit() or int(value) < least:
        raise ValueError(f"a whole number from {least}")
    return int(value)


def duration_s(value: str) -> float:
    """Parse ``500ms``, ``30s``, ``15m``, ``2h`` or ``1d``; return seconds."""
    match = _DURATION.fullmatch(value.strip())
    if match is None:
        raise ValueError("a number with ms, s, m, h or d, such as 15m")
    seconds = int(match[1]) * _UNITS_S[match[2]]
    if seconds > LONGEST_D * _UNITS_S["d"]:
        raise ValueError(f"at most {LONGEST_D}d")
    return seconds


def moment_ms(value: str) -> int:
    """Parse a time: milliseconds since the epoch, or ISO 8601, in UTC by default.

    Return milliseconds, rounded up, so that a bound never includes too much.
    """
    if re.fullmatch(r"\d+", value):
        return int(value)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("milliseconds since 1970, or ISO 8601 such as 2026-01-31T12:00:00Z") from None
    return ceil_ms(moment)


def ceil_ms(moment: datetime) -> int:
    """Return the first millisecond since the epoch that is not before a time; without a zone it is UTC."""
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    micros = (since.days * 86400 + since.seconds) * 1_000_000 + since.microseconds
    return -(-micros // 1000)


def names(value: str) -> tuple[str, ...]:
    """Parse names separated by commas, or a JSON list for names that contain commas."""
    found = _json_names(value) if value.lstrip().startswith("[") else [name.strip() for name in value.split(",")]
    if not found or not all(found):
        raise ValueError("names with commas between them, or a list of names in JSON")
    return tuple(dict.fromkeys(found))


def master(value: str) -> str:
    """Parse Spark's master. For an invalid one, Spark would print the traceback of a Java program."""
    if _MASTER.fullmatch(value) is None:
        raise ValueError("local[N], spark://host:port, sc://host:port, yarn or k8s://...")
    return value


def shown(master: str) -> str:
    """Return a master without the parameters of its URL, which may be a token, whether the URL is valid or not."""
    place, separator, _ = master.partition(";")
    return place.removesuffix("/") if separator else place


def brokers(value: str) -> dict[str, dict[str, str]]:
    """Parse brokers by name, a JSON object: each with its URL, URLs with commas, or an object of its options."""
    try:
        found = json.loads(value, object_pairs_hook=_without_repetition)
    except ValueError:
        found = None
    options = {name: {"urls": each} if isinstance(each, str) else each for name, each in _items(found)}
    if not options or not all(_BROKER.fullmatch(name) and _are_texts(each) for name, each in options.items()):
        raise ValueError(
            'JSON such as {"oslo": "http://oslo:15672", "rome": {"url": "http://rome:15672", "username": "spark"}}, '
            "with names of letters, digits, '_', '.' and '-'"
        )
    return options


def pattern(value: str) -> str:
    """Parse a regular expression."""
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"a regular expression ({error})") from None
    return text(value)


def one_of(*allowed: str) -> Reader:
    """Return a parser of one of some words."""

    def read(value: str) -> str:
        if value not in allowed:
            raise ValueError(", ".join(allowed[:-1]) + f" or {allowed[-1]}")
        return value

    return read


def read(option: str, value: str, reader: Reader, show: Callable[[str], str] = str) -> Any:
    """Parse an option; ``show`` omits secrets of its value.

    :raises OptionError: with its name, the permitted values and the given one.
    """
    try:
        return reader(value)
    except ValueError as error:
        raise OptionError(f"option '{option}' must be {error}, not '{show(value)}'") from None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name is repeated")
    return dict(pairs)


def _items(found: object) -> list[tuple[str, Any]]:
    return list(found.items()) if isinstance(found, dict) else []


def _are_texts(found: object) -> bool:
    return isinstance(found, dict) and all(isinstance(each, str) for each in found.values())


def _json_names(value: str) -> list[str]:
    try:
        found = json.loads(value)
    except ValueError:
        return []
    return found if isinstance(found, list) and all(isinstance(name, str) for name in found) else []
