"""Messages fetched over HTTP: taken, shown and settled a few at a time, no faster than the client takes the answer."""

from collections.abc import Iterator
from typing import Final

from gateway.kernel.clock import Clock
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.queue import DeliveryOutcome, Queue
from gateway.management.http.routes import Pieces
from gateway.management.messages import message_view
from gateway.management.views.json import encode

#: Bytes of one answer; fetching stops behind them.
MOST_BYTES: Final = 32 * 2**20

#: Messages of one answer.
MOST_MESSAGES: Final = 10_000

#: Messages taken or settled in one step.
_STRIDE: Final = 20


class Fetch:
    """One request for messages. Until the answer is made they are unacknowledged; if the client goes they come back."""

    def __init__(
        self, queue: Queue, clock: Clock, count: int, outcome: DeliveryOutcome, encoding: str, truncate: int
    ) -> None:
        self._queue = queue
        self._clock = clock
        self._count = min(count, MOST_MESSAGES)
        self._outcome = outcome
        self._encoding = encoding
        self._truncate = truncate
        self._taken: list[QueuedMessage] = []

    def pieces(self) -> Pieces:
        """Make the answer, a little each time this is asked on, then settle the messages."""
        try:
            yield b"["
            yield from self._shown()
            yield from self._settled(self._outcome)
            yield b"]"
        finally:
            if self._taken:
                self._clock.background.add(self._settled(DeliveryOutcome.REQUEUED))

    def _shown(self) -> Pieces:
        queue, size, count = self._queue, 0, 0
        while count < self._count and size < MOST_BYTES and not queue.is_deleted:
            entry = queue.get()
            if entry is None and len(queue):  # many that expired stand before it
                for _ in queue.dropping_due():
                    yield b""
                entry = queue.take()
            if entry is None:
                queue.counters.get_empty += 1
                return
            queue.counters.get += 1
            queue.counters.redeliver += entry.is_redelivered
            self._taken.append(entry)
            message = queue.shown(entry)
            piece = encode(message_view(len(queue), entry, message, self._encoding, self._truncate))
            yield b"," + piece if count else piece
            size += len(piece)
            count += 1

    def _settled(self, outcome: DeliveryOutcome) -> Iterator[None]:
        """Settle what was taken, as it was taken."""
        taken, self._taken = self._taken, []
        for number, entry in enumerate(taken):
            self._queue.settle(entry, outcome)
            if number % _STRIDE == _STRIDE - 1:
                yield
        self._queue.dispatch()
