"""Queue expiry: a queue that nobody uses for a while is deleted (R37-R39).

Used means consumed from, declared, or fetched from. The timer is not moved with every use: when it rings, it looks when
the queue was last used and goes on for what is left.
"""

from collections.abc import Iterator

from gateway.kernel.clock import Timer
from gateway.kernel.features.context import FeatureContext
from gateway.kernel.queueing.feature import QueueFeature
from gateway.kernel.queueing.queue import Queue

#: Timers are set for a day at most; one that rings early goes on.
LONGEST_S = 86_400.0


def lease(queue: Queue, context: FeatureContext) -> "Lease | None":
    """Return the feature, if the queue is to expire."""
    expires_ms = queue.settings.number("expires")
    return None if expires_ms is None else Lease(expires_ms / 1000, context)


class Lease(QueueFeature):
    """Deletes its queue once it was unused for ``period_s``. A start of the broker begins the lease anew (R38)."""

    def __init__(self, period_s: float, context: FeatureContext) -> None:
        self._period_s = period_s
        self._clock = context.clock
        self._delete = context.delete
        self._used_at_s = self._clock.monotonic_s()
        self._is_retired = False
        self._timer: Timer | None = None

    def inherit(self, earlier: QueueFeature) -> None:
        """Count from the last use, whatever the period was then."""
        assert isinstance(earlier, Lease)
        self._used_at_s = earlier._used_at_s

    def fitted(self, queue: Queue) -> None:
        """Begin."""
        self._go_on(queue)

    def retired(self, queue: Queue) -> None:
        """Stop."""
        self._is_retired = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def used(self, queue: Queue) -> None:
        """Begin anew, once the timer looks."""
        self._used_at_s = self._clock.monotonic_s()

    def _go_on(self, queue: Queue) -> None:
        """Wait for what is left of the lease, or for a whole one while somebody consumes."""
        left_s = self._left_s(queue)
        if left_s <= 0:
            self._timer = None
            self._clock.background.add_later(self._deleting(queue))  # many leases may end in one turn
        else:
            self._timer = self._clock.call_later(min(left_s, LONGEST_S), lambda: self._go_on(queue))

    def _left_s(self, queue: Queue) -> float:
        now_s = self._clock.monotonic_s()
        if len(queue.consumers):
            self._used_at_s = now_s
        return self._used_at_s + self._period_s - now_s

    def _deleting(self, queue: Queue) -> Iterator[None]:
        """Delete the queue, unless somebody used it while this waited."""
        if queue.is_deleted or self._is_retired:
            return
        if self._left_s(queue) <= 0:
            self._delete(queue)
        else:
            self._go_on(queue)
        yield
