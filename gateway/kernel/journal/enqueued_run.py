"""Stored messages of one durable queue in columns: recovery handles a million of them so, not one by one."""

from collections.abc import Iterator, Sequence

from gateway.kernel.journal.changes import Enqueued


class EnqueuedRun:
    """Several ``Enqueued`` of one queue, at rising positions; each without priority, delay and expiry."""

    __slots__ = ("body_sizes", "delivery_counts", "enqueued_at_ms", "message_ids", "positions", "queue_id")

    def __init__(
        self,
        queue_id: int,
        positions: Sequence[int],
        message_ids: Sequence[int],
        enqueued_at_ms: Sequence[int],
        delivery_counts: Sequence[int],
        body_sizes: Sequence[int],
    ) -> None:
        self.queue_id = queue_id
        self.positions = positions
        self.message_ids = message_ids
        self.enqueued_at_ms = enqueued_at_ms
        self.delivery_counts = delivery_counts
        self.body_sizes = body_sizes

    def __len__(self) -> int:
        return len(self.positions)

    def each(self) -> Iterator[Enqueued]:
        """Iterate over the messages."""
        columns = (self.positions, self.message_ids, self.enqueued_at_ms, self.delivery_counts, self.body_sizes)
        for row in zip(*columns, strict=True):
            yield Enqueued(self.queue_id, *row)
