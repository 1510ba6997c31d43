"""Sorting of long lists in small steps: sorted runs, then a merge; and the first entries of such a list."""

from collections.abc import Callable, Generator, Iterable, Sequence
from heapq import merge
from itertools import islice
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

#: Entries in a run; sorting one takes about a millisecond.
_RUN: Final = 500

#: Entries whose keys are made in one step: a key may be a part of an entry's whole view.
_KEYS: Final = 20


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


def first_in_steps(
    entries: Sequence[T], key: Callable[[T], Any], most: int, *, is_reversed: bool = False
) -> Generator[None, None, list[T]]:
    """Return the first entries, at most ``most``, of those sorted by a key, from the last one if ``is_reversed``.

    That is the beginning of what ``sort_in_steps`` returns, or of its reverse. It does not sort what is not asked for.
    """
    best: list[tuple[Any, int, T]] = []
    run: list[tuple[Any, int, T]] = []
    for position, entry in enumerate(entries, 1):
        keyed = key(entry), position, entry
        if len(best) < most or (keyed < best[-1]) is not is_reversed:
            run.append(keyed)
        if len(run) >= _RUN:
            best, run = sorted(best + run, reverse=is_reversed)[:most], []
        if position % _KEYS == 0:
            yield
    return [entry for _, _, entry in sorted(best + run, reverse=is_reversed)[:most]]


class EntryOrder(Generic[T]):
    """The order of a list by a key, which may be a part of an entry's view, or its reverse. Each step is short."""

    def __init__(self, key: Callable[[T], Any], *, is_reversed: bool) -> None:
        self._key = key
        self._is_reversed = is_reversed

    def first(self, entries: Sequence[T], most: int) -> Generator[None, None, list[T]]:
        """Return the first entries, at most ``most``: the beginning of what ``sorted`` returns."""
        return first_in_steps(entries, self._key, most, is_reversed=self._is_reversed)

    def sorted(self, entries: Sequence[T]) -> Generator[None, None, list[T]]:
        """Return all entries in this order. Views are not kept for the response: together they are large."""
        keyed: list[tuple[Any, T]] = []
        for number, entry in enumerate(entries, 1):
            keyed.append((self._key(entry), entry))
            if number % _KEYS == 0:
                yield
        ordered = yield from sort_in_steps(keyed, lambda pair: pair[0])
        return [entry for _, entry in (reversed(ordered) if self._is_reversed else ordered)]
