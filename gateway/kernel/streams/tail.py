"""The newest messages of a stream in memory, for consumers near its end."""

from typing import TYPE_CHECKING, Final

from gateway.kernel.messages.queued_message import QueuedMessage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway.kernel.journal.changes import Appended

#: The number of messages in memory for consumers slightly behind, and the bytes of their bodies.
_MOST_MESSAGES: Final = 1024
_MOST_BYTES: Final = 256 * 1024


class Tail:
    """The last messages of a stream, without gaps; ``is_kept`` while there are consumers.

    ``changes`` are the records for the store, oldest first, including those not durable yet; ``bytes`` is the size of
    their bodies. The stream appends to them directly.
    """

    __slots__ = ("bytes", "changes", "is_kept")

    def __init__(self) -> None:
        self.changes: list[Appended] = []
        self.bytes = 0
        self.is_kept = False

    def keep(self, is_kept: bool) -> None:
        """Start or stop keeping messages."""
        self.is_kept = is_kept
        if not is_kept:
            self.changes = []
            self.bytes = 0

    def extend(self, changes: "list[Appended]", size: int) -> None:
        """Add messages of a run, whose bodies have ``size`` bytes.

        Of a long run the last ones are kept. The others are read from the store, once they are durable.
        """
        if len(self.changes) > 2 * _MOST_MESSAGES:
            self.changes = []
            self.bytes = 0
        self.changes += changes
        self.bytes += size

    def trim(self, durable_end: int) -> None:
        """Drop durable messages beyond the limits: they are read from the store."""
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
        """Return whether the message at this offset is here."""
        return bool(self.changes) and self.changes[0].offset <= offset <= self.changes[-1].offset

    def slice_end(self, offset: int, end: int, most_bytes: int) -> int:
        """Return the end of a slice from ``offset`` (which must be here), limited by ``end`` and ``most_bytes``."""
        first = self.changes[0].offset
        for change in self.changes[offset - first : end - first]:
            offset += 1
            most_bytes -= len(change.message.body)
            if most_bytes <= 0:
                break
        return offset

    def messages(self, offset: int, end: int) -> "Iterator[tuple[bytes, QueuedMessage]]":
        """Yield filter value and entry of each message from ``offset``, which must be here, up to ``end``."""
        first = self.changes[0].offset
        for change in self.changes[offset - first : end - first]:
            yield change.filter_value, QueuedMessage(change.message, change.offset, change.timestamp_ms, True)
