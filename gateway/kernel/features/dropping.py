"""Base of the features that drop messages from the head of their queue: a few at once, large numbers in slices."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from gateway.kernel.features.context import FeatureContext
from gateway.kernel.queueing.feature import QueueFeature

if TYPE_CHECKING:
    from gateway.kernel.clock import Timer
    from gateway.kernel.queueing.queue import Queue

#: Messages dropped at once per arriving one: more than one, so that a queue that is being shortened does not grow.
_AT_ONCE: Final = 8


class Dropping(QueueFeature):
    """Drops the oldest messages while ``_drops_one`` finds one to drop; stops when it is detached.

    Has one timer, which a subclass sets and ``detached`` cancels.
    """

    def __init__(self, queue: "Queue", context: FeatureContext) -> None:
        self._queue = queue
        self._clock = context.clock
        self._journal = context.journal
        self._postponed = context.dead_letters.postponed
        self._is_dropping = False
        self._is_retired = False
        self._timer: Timer | None = None

    def detached(self) -> None:
        """Stop dropping, and cancel the timer."""
        self._is_retired = True
        self._cancel_timer()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _drops_one(self) -> bool:
        """Drop the oldest message if it must be dropped; return whether it was."""
        raise NotImplementedError

    def _drops_few(self) -> bool:
        """Drop a few messages; return whether there may be more to drop."""
        for _ in range(_AT_ONCE):  # noqa: SIM110 - a generator would double the cost, for every message
            if not self._drops_one():
                return False
        return True

    def _drop_in_slices(self, start: "Callable[[Iterator[None]], None]") -> None:
        """Drop all messages that must go, in slices, unless that is in progress.

        ``start`` adds the job to the background.
        """
        if not self._is_dropping:
            self._is_dropping = True
            start(self._dropping())

    def _dropping(self) -> Iterator[None]:
        """Return the steps of a job. Its dead letters delay no confirm, because no publish of this turn caused them."""
        journal = self._journal
        try:
            while not self._is_retired:
                yield from self._postponed.steps()  # else this job would postpone more and more drops
                if not journal.delaying_no_confirm(self._drops_one):
                    return
                yield
        finally:
            self._is_dropping = False
