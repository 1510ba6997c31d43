"""Consumer timeout: the time that a channel's deliveries have been unacknowledged, without a timestamp for each."""

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.kernel.queueing.consumer import ConsumedQueue
    from gateway.kernel.queueing.ledger import Ledger

#: The default consumer timeout in milliseconds, as in RabbitMQ: half an hour.
CONSUMER_TIMEOUT_MS: Final = 1_800_000

#: The least time between two marks, in seconds; a timeout may be detected this much later than due.
_BETWEEN_MARKS_S: Final = 0.5


class AckTimeout:
    """Checks the consumer timeout of one channel.

    Marks record the time and the last delivery tag, at most one each ``_BETWEEN_MARKS_S``. A delivery with a lower tag
    is at least as old as the mark. ``watch`` adds a queue that the channel consumes from.
    """

    __slots__ = ("_marks", "_queues")

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()
        self._queues: dict[ConsumedQueue, None] = {}

    def watch(self, queue: "ConsumedQueue") -> None:
        """Check the timeout of this queue from now on."""
        self._queues[queue] = None

    def exhausted(self, ledger: "Ledger", now_s: float, default_ms: int) -> int | None:
        """Return the timeout in milliseconds that some delivery has exceeded, or ``None``. Call it periodically.

        ``default_ms`` holds for queues without a timeout of their own; 0 is no timeout.
        """
        if not len(ledger):
            self._marks.clear()
            return None
        self._mark(ledger, now_s)
        limit_by_queue = self._limits(default_ms)
        shortest_ms = min(limit_by_queue.values(), default=0)
        if not shortest_ms:
            return None
        marks = iter(self._marks)
        since_s, up_to = next(marks)
        for delivery in ledger:
            while delivery.tag > up_to:
                mark = next(marks, None)
                if mark is None:
                    return None
                since_s, up_to = mark
            out_ms = (now_s - since_s) * 1000
            if out_ms < shortest_ms:
                return None
            limit_ms = limit_by_queue.get(delivery.queue)
            if limit_ms is not None and out_ms >= limit_ms:
                return limit_ms
        return None

    def _mark(self, ledger: "Ledger", now_s: float) -> None:
        """Add a mark if the last one is old enough; remove marks below the oldest delivery."""
        marks = self._marks
        oldest = next(iter(ledger)).tag
        while len(marks) > 1 and marks[0][1] < oldest:
            marks.popleft()
        if not marks or (ledger.last_tag > marks[-1][1] and now_s - marks[-1][0] >= _BETWEEN_MARKS_S):
            marks.append((now_s, ledger.last_tag))

    def _limits(self, default_ms: int) -> "dict[ConsumedQueue, int]":
        """Return the timeouts of the queues that have one; stop watching deleted queues."""
        self._queues = {queue: None for queue in self._queues if not queue.is_deleted}
        limits = ((queue, queue.settings.number("consumer-timeout") or default_ms) for queue in self._queues)
        return {queue: limit_ms for queue, limit_ms in limits if limit_ms}
