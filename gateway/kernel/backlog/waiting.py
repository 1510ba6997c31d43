"""The interfaces of a queue's waiting messages, and of one row of them."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.kernel.journal.changes import Enqueued
    from gateway.kernel.journal.enqueued_run import EnqueuedRun
    from gateway.kernel.messages.paged_segment import PagedSegment
    from gateway.kernel.messages.queued_message import QueuedMessage


class Waiting:
    """The waiting messages of one queue. ``length`` is their number, ``bytes`` the sum of their body sizes."""

    __slots__ = ("bytes", "length")

    def __init__(self) -> None:
        self.length = 0
        self.bytes = 0

    def __len__(self) -> int:
        """Return ``length``."""
        return self.length

    def append(self, entry: "QueuedMessage") -> None:
        """Add the newest message."""
        raise NotImplementedError

    def extend(self, entries: "list[QueuedMessage]", size: int) -> None:
        """Add the newest messages, which have one header, and bodies of ``size`` bytes."""
        raise NotImplementedError

    def popleft(self) -> "QueuedMessage":
        """Remove and return the next message. :raises IndexError: if there is none."""
        raise NotImplementedError

    def peek(self) -> "QueuedMessage | None":
        """Return the next message and leave it in place; ``None`` if there is none."""
        raise NotImplementedError

    def put_back(self, entry: "QueuedMessage") -> None:
        """Return a message to the place it was taken from (R88)."""
        raise NotImplementedError

    def restore(self, change: "Enqueued", is_redelivered: bool) -> None:
        """Add the newest message, found in the store by recovery."""
        raise NotImplementedError

    def restore_run(self, run: "EnqueuedRun", flags: bytes) -> None:
        """Add the newest messages, found in the store by recovery; ``flags`` has those of ``PagedSegment`` for each."""
        raise NotImplementedError

    def take_out(self, seen: "QueuedMessage") -> "QueuedMessage | None":
        """Remove and return a message that was ``seen`` in one of the rows, ``None`` if it is gone."""
        raise NotImplementedError

    def rows(self) -> "Iterator[WaitingRow]":
        """Iterate over the rows of messages, in the order they are served."""
        raise NotImplementedError

    def numbered_rows(self) -> "Iterator[tuple[int, WaitingRow]]":
        """Iterate over the rows as ``rows`` does, each with a number that does not change while the queue exists."""
        raise NotImplementedError

    def remove(self, positions: set[int]) -> "list[QueuedMessage]":
        """Remove the messages at these positions; return them in the order of their positions."""
        raise NotImplementedError

    def positions(self) -> Iterator[int]:
        """Iterate over the positions of all messages, in no particular order."""
        raise NotImplementedError

    def heads(self) -> "Iterator[QueuedMessage]":
        """Iterate over the oldest message of each priority."""
        raise NotImplementedError

    def paged(self) -> "Iterator[PagedSegment]":
        """Iterate over the paged messages."""
        raise NotImplementedError

    def clear(self) -> "tuple[list[QueuedMessage], list[PagedSegment]]":
        """Remove everything; return the entries that were in memory and the paged segments."""
        raise NotImplementedError

    def resident(self) -> "Iterator[QueuedMessage]":
        """Iterate over the messages in memory, oldest first within each part."""
        raise NotImplementedError


class WaitingRow(Waiting):
    """Waiting messages in the order of their positions, as a search sees them. ``returns`` counts requeued messages."""

    __slots__ = ("returns",)

    def __init__(self) -> None:
        super().__init__()
        self.returns = 0

    @property
    def newest(self) -> int:
        """The last position, not counting requeued messages; 0 if there is none."""
        raise NotImplementedError

    def after(self, position: int) -> "list[QueuedMessage]":
        """Return the next few messages after a position, without the requeued ones; all stay where they are."""
        raise NotImplementedError

    def requeued_at(self, position: int) -> "QueuedMessage | None":
        """Return the message requeued at a position; ``None`` if there is none."""
        raise NotImplementedError

    def requeued_since(self, number: int) -> list[int]:
        """Return the positions of waiting messages that were requeued after this value of ``returns``."""
        raise NotImplementedError

    def requeued_positions(self) -> list[int]:
        """Return the positions of all requeued messages, in no particular order."""
        raise NotImplementedError

    def look_at(self, position: int) -> "QueuedMessage | None":
        """Return the message at a position and leave it where it is; ``None`` if there is none."""
        raise NotImplementedError
