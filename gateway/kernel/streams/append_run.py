"""Messages that a log gets together, in the turn in which the store gets their step.

A commit may append 100,000 messages to a stream. Its offsets and times are those of the last turn, because other
publishers append to the stream meanwhile. All other work for a message is done when it is added, in earlier turns.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from gateway.kernel.journal.changes import Appended
from gateway.kernel.journal.open_step import LateAppends
from gateway.kernel.messages.chunks import ENTRY_SIZE
from gateway.kernel.messages.contents import LENGTHS_SIZE
from gateway.kernel.streams.filters import Bloom, filter_value_of

if TYPE_CHECKING:
    from gateway.kernel.messages.message import Message

#: The size of a message besides its header, body and names.
OVERHEAD: Final = ENTRY_SIZE + LENGTHS_SIZE

#: The messages of a part: few enough to append them singly where a segment ends.
_PART_LENGTH: Final = 256


class RunPart:
    """Some messages of a run: their changes, whose offsets and times are not set yet, and what they add to a segment.

    ``mask`` are the bits of their filter values; ``size`` is their size in the store, ``body_size`` that of the bodies.
    """

    __slots__ = ("body_size", "changes", "holds_unfiltered", "mask", "size")

    def __init__(self) -> None:
        self.changes: list[Appended] = []
        self.mask = 0
        self.holds_unfiltered = False
        self.size = 0
        self.body_size = 0


class AppendRun(LateAppends):
    """The messages of one step for the log ``stream_id``; ``append_run`` appends them to it."""

    __slots__ = ("_append_run", "_bloom", "_stream_id", "parts")

    def __init__(self, stream_id: int, bloom: Bloom, append_run: "Callable[[AppendRun], None]") -> None:
        self._stream_id = stream_id
        self._bloom = bloom
        self._append_run = append_run
        self.parts: list[RunPart] = []

    @property
    def changes(self) -> "Iterator[Appended]":
        """The changes of all parts."""
        for part in self.parts:
            yield from part.changes

    def add(self, message: "Message") -> None:
        """Add a message."""
        parts = self.parts
        if not parts or len(parts[-1].changes) == _PART_LENGTH:
            parts.append(RunPart())
        part = parts[-1]
        header = message.header
        value = header.filter_value
        if value is None:
            value = filter_value_of(header)
        if value:
            part.mask |= self._bloom.mask(value)
        else:
            part.holds_unfiltered = True
        part.body_size += len(message.body)
        part.size += len(message.body) + len(header.stored_raw) + len(message.exchange) + len(message.routing_key)
        part.size += len(value) + len(header.format.name) + OVERHEAD
        part.changes.append(Appended(self._stream_id, 0, 0, value, message))

    def append(self) -> None:
        """Append all messages to the log."""
        self._append_run(self)
