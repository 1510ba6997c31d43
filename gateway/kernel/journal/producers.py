"""The last published batch of each producer, so that a batch sent again is a duplicate, after a crash too.

A *producer* publishes batches under its name, for one or several *queries*, each with a rising batch number.
"""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from gateway.kernel.clock import drained
from gateway.kernel.journal.changes import Put, Removed
from gateway.kernel.journal.records.progress import ProducerRecord

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal

#: The most queries that are forgotten in one turn; each published batch forgets as many.
_FORGOTTEN_AT_ONCE: Final = 256


class Producers:
    """Owns the last batch of each query, oldest first."""

    def __init__(self, vhost_name: str, journal: "Journal") -> None:
        self._vhost_name = vhost_name
        self._journal = journal
        self._record_by_query: dict[tuple[str, str], ProducerRecord] = {}

    def __len__(self) -> int:
        return len(self._record_by_query)

    def has_published(self, producer: str, query: str, batch: int) -> bool:
        """Return whether this batch, or a later one of the same query, was published."""
        record = self._record_by_query.get((producer, query))
        return record is not None and batch <= record.batch

    def published(self, producer: str, query: str, batch: int) -> None:
        """Record a published batch, in the same turn as its messages."""
        record = ProducerRecord(self._vhost_name, producer, query, batch, self._journal.now_ms)
        self.install(record)
        self._journal.record(Put(record))

    def install(self, record: ProducerRecord) -> None:
        """Add a batch as the newest one."""
        key = record.producer, record.query
        self._record_by_query.pop(key, None)
        self._record_by_query[key] = record

    def settle(self) -> None:
        """Sort the batches found by recovery, which have no order in the store."""
        for record in sorted(self._record_by_query.values(), key=lambda record: record.published_at_ms):
            self.install(record)

    def forget(self, age_ms: int) -> None:
        """Forget queries whose last batch is older than this, a few with each call."""
        before_ms = self._journal.now_ms - age_ms
        for key, record in list(islice(self._record_by_query.items(), _FORGOTTEN_AT_ONCE)):
            if record.published_at_ms >= before_ms:
                return
            self._remove(key, record)

    def erasing(self) -> Iterator[None]:
        """Return the steps that forget all queries, with their virtual host."""
        for key, record in drained(list(self._record_by_query.items())):
            self._remove(key, record)
            yield

    def _remove(self, key: tuple[str, str], record: ProducerRecord) -> None:
        del self._record_by_query[key]
        self._journal.record(Removed(record.kind, record.key))
