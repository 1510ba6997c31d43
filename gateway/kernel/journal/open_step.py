"""Changes of several turns that the store gets as one: a long commit takes slices, and survives whole or not at all.

While the step is open, changes to its messages belong to it too, whichever client makes them. Otherwise the store would
hear that a message is gone before it hears that there is one.
"""

from gateway.kernel.journal.changes import Change, Stored
from gateway.kernel.messages.message import Message


class OpenStep:
    """The ``changes`` gathered so far, about ``size`` bytes with their bodies.

    ``message_ids`` are the contents that the step has to do with; ``contents`` are those that it is the first to store.
    """

    __slots__ = ("_seen", "changes", "contents", "message_ids", "size")

    def __init__(self) -> None:
        self._seen = 0
        self.changes: list[Change] = []
        self.contents: dict[int, Message] = {}
        self.message_ids: set[int] = set()
        self.size = 0

    def note_contents(self) -> None:
        """Remember the contents among the changes since the last call, for those who read them back."""
        for change in self.changes[self._seen :]:
            if isinstance(change, Stored):
                self.contents[change.message_id] = change.message
        self._seen = len(self.changes)
