"""Passes on the first answer and drops the others, which would come from a confused plugin."""

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    """Stands in for the one who waits for an answer."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Callable[[T], None]) -> None:
        self._answer: Callable[[T], None] | None = answer

    def __call__(self, given: T) -> None:
        """Hear an answer."""
        answer, self._answer = self._answer, None
        if answer is not None:
            answer(given)
