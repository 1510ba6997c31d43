"""Results of work that is done in steps."""

from collections.abc import Generator, Iterator
from typing import TypeVar

T = TypeVar("T")


def result_of(steps: Generator[object, None, T]) -> T:
    """Make all steps, and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def found_by(steps: Iterator[T | None]) -> list[T]:
    """Make all steps, and return what they find; ``None`` is a point where other work may run."""
    return [found for found in steps if found is not None]
