"""Callbacks for asynchronous results: call at most once, or call several."""

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from gateway.logs import StructuredLog

_log: Final = StructuredLog("access")

T = TypeVar("T")


def call_each(callbacks: Iterable[Callable[[T], None]], given: T) -> None:
    """Call each callback with a result; an exception in one does not stop the others."""
    for callback in callbacks:
        try:
            callback(given)
        except Exception:  # the connection that failed has its own timeout
            _log.error("a login failed", exc_info=True)


class Once(Generic[T]):
    """A callback that forwards its first call and ignores the rest."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Callable[[T], None]) -> None:
        self._answer: Callable[[T], None] | None = answer

    def __call__(self, given: T) -> None:
        """Forward the result if it is the first."""
        answer, self._answer = self._answer, None
        if answer is not None:
            answer(given)
