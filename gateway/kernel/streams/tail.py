"""The end of a stream in memory, for readers who are there already."""

from typing import TYPE_CHECKING, Final

from gateway.kernel.messages.queued_message import QueuedMessage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.kernel.journal.changes import Appended

#: How many messages readers who fall behind a little still find in memory, and the bytes of their bodies.
_MOST_MESSAGES: Final = 1024
_MOST_BYTES: Final = 256 * 1024


class Tail:
    """The last messages of a stream, without gaps, while ``is_kept``: while somebody reads.

    ``changes`` are what the stream recorded for the store, oldest first, undurable ones among them; their bodies take
    ``bytes``. The stream appends to them by itself.
    """

    __slots__ = ("bytes", "changes", "is_kept")

    def __init__(self) -> None:
        self.changes: list[Appended] = []
        self.bytes = 0
        self.is_kept = False

    def keep(self, is_kept: bool) -> None:
        """Gather messages from now on, or no more."""
        self.is_kept = is_kept
        if not is_kept:
            self.changes = []
            self.bytes = 0

    def trim(self, durable_end: int) -> None:
        """Let go of what is durable and more than enough: others read it from the store."""
        changes = self.changes
        if len(changes) <= 2 * _MOST_MESSAGES and self.bytes <= 2 * _MOST_BYTES:
            return
        gone = 0
        while gone < len(changes) and changes[gone].offset < durable_end:
            if len(changes) - gone <= _MOST_MESSAGES and self.bytes <= _MOST_BYTES:
                break
            self.bytes -= len(changes[gone].message.body)
            gone += 1
        del changes[:gone]

    def holds(self, offset: int) -> bool:
        """Tell whether the message at this offset is here."""
        return bool(self.changes) and self.changes[0].offset <= offset <= self.changes[-1].offset

    def slice_end(self, offset: int, end: int, most_bytes: int) -> int:
        """Return how far to read from ``offset``, which must be here, so as not to pass ``end`` or so many bytes."""
        first = self.changes[0].offset
        for change in self.changes[offset - first : end - first]:
            offset += 1
            most_bytes -= len(change.message.body)
            if most_bytes <= 0:
                break
        return offset

    def messages(self, offset: int, end: int) -> "Iterator[tuple[bytes, QueuedMessage]]":
        """Yield filter value and place of each message from ``offset``, which must be here, up to ``end``."""
        first = self.changes[0].offset
        for change in self.changes[offset - first : end - first]:
            yield change.filter_value, QueuedMessage(change.message, change.offset, change.timestamp_ms, True)
