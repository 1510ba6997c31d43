"""Changes of several turns that the store gets as one step: a long commit runs in slices, and is atomic.

While the step is open, changes to its messages belong to it too, whichever client makes them. Otherwise the store could
get the removal of a message before the message.
"""

from collections.abc import Iterator
from typing import Final

from gateway.kernel.compiling import mypyc_attr
from gateway.kernel.journal.changes import Change, Stored
from gateway.kernel.messages.message import Message

#: Entries of the indexes that are freed between two readings of the clock.
_FREED_IN_STEP: Final = 256


@mypyc_attr(allow_interpreted_subclasses=True)
class LateAppends:
    """Messages of a step for one log, which gets them when the step is closed."""

    __slots__ = ()

    def append(self) -> None:
        """Append them: their changes are part of the turn of the call."""
        raise NotImplementedError


class OpenStep:
    """The ``changes`` collected so far, about ``size`` bytes with their bodies.

    ``message_ids`` are the contents that the step's changes refer to; ``contents`` are those that it stores first.
    ``appends`` are its messages for streams and archives, by the number of the log: offsets rise in the order of the
    store's steps, so they are given when the step is closed. ``is_open`` until its changes are part of a turn.
    """

    __slots__ = ("_seen", "appends", "changes", "contents", "is_open", "message_ids", "size")

    def __init__(self) -> None:
        self._seen = 0
        self.is_open = True
        self.appends: dict[int, LateAppends] = {}
        self.changes: list[Change] = []
        self.contents: dict[int, Message] = {}
        self.message_ids: set[int] = set()
        self.size = 0

    def note_contents(self) -> None:
        """Index the contents among the changes since the last call, for ``Journal.contents``."""
        for change in self.changes[self._seen :]:
            if isinstance(change, Stored):
                self.contents[change.message_id] = change.message
        self._seen = len(self.changes)

    def freeing(self) -> Iterator[None]:
        """Return the steps that empty the indexes of a closed step: at once that takes 5 ms for 100,000 messages."""
        contents, message_ids = self.contents, self.message_ids
        while contents:
            contents.popitem()
            if not len(contents) % _FREED_IN_STEP:
                yield
        while message_ids:
            message_ids.pop()
            if not len(message_ids) % _FREED_IN_STEP:
                yield
