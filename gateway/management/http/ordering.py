"""Sorting of long lists in small steps: sorted runs, then a merge."""

from collections.abc import Callable, Generator, Iterable
from heapq import merge
from itertools import islice
from typing import Any, Final, TypeVar

T = TypeVar("T")

#: Entries in a run; sorting one takes about a millisecond.
_RUN: Final = 500


def sort_in_steps(
    entries: Iterable[T | None], key: Callable[[T], Any], is_visible: Callable[[T], bool] | None = None
) -> Generator[None, None, list[T]]:
    """Return the entries that are visible, sorted by a key; the sort is stable. Each step is short.

    ``None`` is no entry: a source yields it where it has looked at some objects without finding one.
    """
    source, position = iter(entries), 0
    runs: list[list[tuple[Any, int, T]]] = []
    while some := list(islice(source, _RUN)):
        chosen = [entry for entry in some if entry is not None and (is_visible is None or is_visible(entry))]
        runs.append(sorted((key(entry), position + number, entry) for number, entry in enumerate(chosen)))
        position += len(chosen)
        yield
    if len(runs) == 1:
        return [entry for _, _, entry in runs[0]]
    ordered: list[T] = []
    merged = merge(*runs)
    while run := list(islice(merged, _RUN)):
        ordered += [entry for _, _, entry in run]
        yield
    return ordered
