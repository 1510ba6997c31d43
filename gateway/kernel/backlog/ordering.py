"""Sorting of very many keys in small steps."""

from collections.abc import Iterator
from heapq import merge, nsmallest
from itertools import islice
from typing import Final

#: Keys that are sorted in one step.
_SORTED_AT_ONCE: Final = 4096


def in_order(keys: list[int], most: int | None = None) -> Iterator[int | None]:
    """Yield keys in rising order, at most the ``most`` first of them; ``None`` while they are sorted in steps."""
    chunks = []
    for start in range(0, len(keys), _SORTED_AT_ONCE):
        part = keys[start : start + _SORTED_AT_ONCE]
        chunks.append(sorted(part) if most is None else nsmallest(most, part))
        yield None
    yield from islice(merge(*chunks), most)
