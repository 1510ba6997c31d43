"""Fetching of messages over HTTP: in small steps, as fast as the client reads the response."""

from collections.abc import Callable, Iterator
from typing import Final

from gateway.kernel.clock import Clock
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.queued_message import QueuedMessage
from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from gateway.kernel.queueing.expired_heads import drop_expired_steps
from gateway.kernel.queueing.queue import Queue
from gateway.management.http.routes import Pieces
from gateway.management.messages import message_view
from gateway.management.views.json import encode

#: Size of a response in bytes at which fetching stops.
MAX_BYTES: Final = 32 * 2**20

#: Maximum number of messages in a response.
MAX_MESSAGES: Final = 10_000

#: Messages fetched or settled in one step.
_BATCH_SIZE: Final = 20


class MessageFetch:
    """One fetch request. ``shown`` returns the message of an entry as the client gets it.

    The messages stay unacknowledged until the response is complete; they are requeued if the client disconnects.
    """

    def __init__(
        self,
        queue: Queue,
        shown: Callable[[QueuedMessage], Message],
        clock: Clock,
        count: int,
        outcome: DeliveryOutcome,
        encoding: str,
        truncate: int,
    ) -> None:
        self._queue = queue
        self._shown = shown
        self._clock = clock
        self._count = min(count, MAX_MESSAGES)
        self._outcome = outcome
        self._encoding = encoding
        self._truncate = truncate
        self._fetched: list[QueuedMessage] = []

    def pieces(self) -> Pieces:
        """Yield the response in pieces, then settle the messages."""
        try:
            yield b"["
            yield from self._fetch()
            yield from self._settle(self._outcome)
            yield b"]"
        finally:
            if self._fetched:
                self._clock.background.add(self._settle(DeliveryOutcome.REQUEUED))

    def _fetch(self) -> Pieces:
        queue, size, count = self._queue, 0, 0
        while count < self._count and size < MAX_BYTES and not queue.is_deleted:
            entry = queue.get()
            if entry is None and len(queue):  # expired messages precede the next one
                for _ in drop_expired_steps(queue):
                    yield b""
                entry = queue.take()
            if entry is None:
                queue.counters.get_empty += 1
                return
            queue.counters.get += 1
            queue.counters.redeliver += entry.is_redelivered
            self._fetched.append(entry)
            message = self._shown(entry)
            piece = encode(message_view(len(queue), entry, message, self._encoding, self._truncate))
            yield b"," + piece if count else piece
            size += len(piece)
            count += 1

    def _settle(self, outcome: DeliveryOutcome) -> Iterator[None]:
        """Settle the fetched messages in order."""
        fetched, self._fetched = self._fetched, []
        for number, entry in enumerate(fetched):
            self._queue.settle(entry, outcome)
            if number % _BATCH_SIZE == _BATCH_SIZE - 1:
                yield
        self._queue.dispatch()
