"""The port for the copy of the data that a node has on its own disk."""

from collections.abc import Iterator, Mapping
from typing import Protocol, TypeAlias

from gateway.kernel.journal.changes import Appended, Change, Enqueued, Put, Sealed, Stored, Truncated
from gateway.kernel.journal.store import Store

DurableRecord: TypeAlias = Put | Stored | Enqueued | Truncated | Appended | Sealed
"""What a copy has, besides what was set aside."""


class LocalStore(Store, Protocol):
    """A store that can be read while it is in use."""

    @property
    def orphans(self) -> list[Change]:
        """The changes by which recovery removed messages of queues and streams that do not exist."""
        ...

    def durable_records(
        self, stream_ends: Mapping[int, int], last_message_id: int, last_position: int
    ) -> Iterator[DurableRecord]:
        """Yield what is durable, each record as it is at the time: entities, contents by id, queue entries by position.

        Contents and queue entries end with these numbers: else publishers could add more than a reader takes.
        Then these streams, up to an offset (exclusive): of each its first offset as ``Truncated``, its messages in
        order, and its sealed segments, each after its last message. Changes meanwhile may be seen or not. No lock is
        held between two records.
        """
        ...
