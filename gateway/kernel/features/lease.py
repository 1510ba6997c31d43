"""Queue expiry: a queue that is unused for a period is deleted (R37-R39).

Use means a consumer, a declaration or a get. The timer is not reset with every use: when it expires, it checks the last
use and waits for the remaining time.
"""

from collections.abc import Iterator

from gateway.kernel.clock import Timer
from gateway.kernel.features.context import FeatureContext
from gateway.kernel.queueing.feature import QueueFeature
from gateway.kernel.queueing.queue import Queue

#: The maximum delay of a timer; longer periods take several timers.
LONGEST_S = 86_400.0


def lease(queue: Queue, context: FeatureContext) -> "Lease | None":
    """Return the feature if the queue has an expiry."""
    expires_ms = queue.settings.number("expires")
    return None if expires_ms is None else Lease(queue, expires_ms / 1000, context)


class Lease(QueueFeature):
    """Deletes its queue once it was unused for ``period_s``. The period starts again when the broker starts (R38)."""

    def __init__(self, queue: Queue, period_s: float, context: FeatureContext) -> None:
        self._queue = queue
        self._period_s = period_s
        self._clock = context.clock
        self._delete = context.delete
        self._used_at_s = self._clock.monotonic_s()
        self._is_retired = False
        self._timer: Timer | None = None

    def inherit(self, earlier: QueueFeature) -> None:
        """Keep the time of the last use when a policy changes the period."""
        assert isinstance(earlier, Lease)
        self._used_at_s = earlier._used_at_s

    def attached(self) -> None:
        """Start the timer."""
        self._wait()

    def detached(self) -> None:
        """Cancel the timer."""
        self._is_retired = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def used(self) -> None:
        """Record the time of a use; the timer checks it later."""
        self._used_at_s = self._clock.monotonic_s()

    def _wait(self) -> None:
        """Wait for the rest of the period, or a whole one while the queue has consumers."""
        left_s = self._left_s()
        if left_s <= 0:
            self._timer = None
            self._clock.background.add_later(self._deleting())  # many queues may expire in one turn
        else:
            self._timer = self._clock.call_later(min(left_s, LONGEST_S), self._wait)

    def _left_s(self) -> float:
        now_s = self._clock.monotonic_s()
        if len(self._queue.consumers):
            self._used_at_s = now_s
        return self._used_at_s + self._period_s - now_s

    def _deleting(self) -> Iterator[None]:
        """Delete the queue, unless it was used in the meantime."""
        if self._queue.is_deleted or self._is_retired:
            return
        if self._left_s() <= 0:
            self._delete(self._queue)
        else:
            self._wait()
        yield
