"""The bounds of a read: a keyword, a time, or an offset for each partition."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from gateway_spark.errors import OptionError
from gateway_spark.offsets import Key, PartitionOffset, decode

#: The first and the next message in JSON offsets, as in other sources of Spark.
EARLIEST_OFFSET: Final = -2
LATEST_OFFSET: Final = -1


@dataclass(frozen=True, slots=True)
class Bound:
    """One bound of a read: ``earliest``, ``latest``, a time in ms since the epoch, or offsets of partitions.

    The start is inclusive, the end exclusive. ``offset_by_key`` may name the incarnation of a stream.
    """

    word: str = ""
    time_ms: int | None = None
    offset_by_key: Mapping[Key, PartitionOffset] = field(default_factory=dict)


EARLIEST: Final = Bound("earliest")
LATEST: Final = Bound("latest")


def starting_offsets(value: str) -> Bound:
    """Parse the option: ``earliest``, ``latest`` or JSON."""
    return _bound(value, "earliest, latest", {"earliest": EARLIEST, "latest": LATEST})


def ending_offsets(value: str) -> Bound:
    """Parse the option: ``latest`` or JSON."""
    bound = _bound(value, "latest", {"latest": LATEST})
    if any(entry.next == EARLIEST_OFFSET for entry in bound.offset_by_key.values()):
        raise ValueError("latest or JSON offsets from 0, or -1 for latest (-2, earliest, is not an end)")
    return bound


def exact_time(time_ms: int) -> Bound:
    """Return the bound of a time: the first message at or after it."""
    return Bound(time_ms=time_ms)


def _bound(value: str, words: str, bound_by_word: Mapping[str, Bound]) -> Bound:
    if value.lower() in bound_by_word:
        return bound_by_word[value.lower()]
    allowed = f'{words} or JSON such as {{"orders": {{"0": 23}}}} (-2 for earliest, -1 for latest)'
    try:
        offset_by_key = decode(json.loads(value))
    except (ValueError, OptionError):
        raise ValueError(allowed) from None
    if any(entry.next < EARLIEST_OFFSET for entry in offset_by_key.values()):
        raise ValueError(allowed)
    return Bound(offset_by_key=offset_by_key)
