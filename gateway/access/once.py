"""Answers that are passed on: the first of several, or one to several who wait for it."""

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from gateway.logs import StructuredLog

_log: Final = StructuredLog("access")

T = TypeVar("T")


def tell_each(hearers: Iterable[Callable[[T], None]], given: T) -> None:
    """Give an answer to each of those who wait; one that fails keeps it from no other."""
    for hear in hearers:
        try:
            hear(given)
        except Exception:  # the connection that failed has its own timeout
            _log.error("a login failed", exc_info=True)


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
