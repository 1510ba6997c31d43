"""Sorting of long lists in small steps: sorted runs, merged one after the other."""

from collections.abc import Callable, Generator, Iterable
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeVar

T = TypeVar("T")

#: Entries in a run: sorted in about a millisecond.
_RUN: Final = 500


def in_order(
    entries: Iterable[T], key: Callable[[T], Any], wanted: Callable[[T], bool] | None = None
) -> Generator[None, None, list[T]]:
    """Return the entries that are ``wanted``, sorted by a key; what is equal keeps its order. Each step is short."""
    source, place = iter(entries), 0
    runs: list[list[tuple[Any, int, T]]] = []
    while some := list(islice(source, _RUN)):
        chosen = some if wanted is None else [entry for entry in some if wanted(entry)]
        runs.append(sorted((key(entry), place + number, entry) for number, entry in enumerate(chosen)))
        place += len(chosen)
        yield
    if len(runs) == 1:
        return [entry for _, _, entry in runs[0]]
    ordered: list[T] = []
    merged = merge(*runs)
    while run := list(islice(merged, _RUN)):
        ordered += [entry for _, _, entry in run]
        yield
    return ordered
