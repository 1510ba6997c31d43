"""How long the deliveries of one channel have been out, told without reading a clock for each of them."""

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gateway.kernel.queueing.ledger import Ledger
    from gateway.kernel.queueing.queue import Queue

#: How long a delivery may be out where nobody says otherwise, in milliseconds, as with RabbitMQ: half an hour.
CONSUMER_TIMEOUT_MS: Final = 1_800_000

#: Marks are at least this far apart; so much later than due a delivery may be noticed.
_BETWEEN_MARKS_S: Final = 0.5


class AckTimeout:
    """Notes now and then how far a channel's tags had come: what has a lower tag has been out at least since then.

    ``watch`` names the queues whose deliveries the channel gets.
    """

    __slots__ = ("_marks", "_queues")

    def __init__(self) -> None:
        self._marks: deque[tuple[float, int]] = deque()
        self._queues: dict[Queue, None] = {}

    def watch(self, queue: "Queue") -> None:
        """Mind the time limit of this queue from now on."""
        self._queues[queue] = None

    def exhausted(self, ledger: "Ledger", now_s: float, default_ms: int) -> int | None:
        """Return the time limit in milliseconds that some delivery has used up, ``None`` if there is none.

        ``default_ms`` holds for queues without a limit of their own; 0 is no limit. Called again and again.
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
        """Note how far the tags have come; forget marks below the oldest delivery."""
        marks = self._marks
        oldest = next(iter(ledger)).tag
        while len(marks) > 1 and marks[0][1] < oldest:
            marks.popleft()
        if not marks or (ledger.last_tag > marks[-1][1] and now_s - marks[-1][0] >= _BETWEEN_MARKS_S):
            marks.append((now_s, ledger.last_tag))

    def _limits(self, default_ms: int) -> "dict[Queue, int]":
        """Return the queues that have a limit, with it; forget those that are deleted."""
        self._queues = {queue: None for queue in self._queues if not queue.is_deleted}
        limits = ((queue, queue.settings.number("consumer-timeout") or default_ms) for queue in self._queues)
        return {queue: limit_ms for queue, limit_ms in limits if limit_ms}
