"""Appends that are not in the tables yet, readable until they are."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NewType

from gateway.kernel.journal.changes import Change, Discarded, Lsn, Stored
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.stored_message import StoredMessage
from gateway.kernel.untracked import untracked
from gateway_lmdb.quarantine import Quarantined
from gateway_lmdb.stream_batch import Filed

ContentKey = NewType("ContentKey", int)
"""A message id, negative for spilled content; ids count from 1."""


class Append:
    """One call of ``Store.append``, or a change of the engine itself: its position and changes."""

    __slots__ = ("changes", "lsn")

    def __init__(self, lsn: Lsn, changes: Sequence[Change | Filed | Quarantined]) -> None:
        self.lsn = lsn
        self.changes = changes


class Staged:
    """The appends that are not in the tables, and the contents they store or discard. Used on the kernel's thread.

    Appends are only collected; reading indexes their contents, each append once. ``on_written`` is called with each one
    that is in the tables.
    """

    def __init__(self, on_written: Callable[[Append], None]) -> None:
        self._on_written = on_written
        self._unindexed: deque[Append] = deque()
        self._indexed: deque[tuple[Lsn, list[ContentKey]]] = deque()
        self._contents: dict[ContentKey, tuple[Lsn, Message | None]] = {}

    def add(self, append: Append) -> None:
        """Add an append."""
        self._unindexed.append(append)

    def find(self, key: ContentKey) -> tuple[bool, StoredMessage | None]:
        """Return whether an append concerns this content, and its current state: ``None`` once discarded."""
        if self._unindexed:
            self._index()
        entry = self._contents.get(key)
        if entry is None:
            return False, None
        message = entry[1]
        return True, None if message is None else as_stored(message)

    def applied(self, watermark: Lsn) -> None:
        """Remove everything up to ``watermark``, which is read from the tables from now on."""
        while self._unindexed and self._unindexed[0].lsn <= watermark:
            self._on_written(self._unindexed.popleft())
        while self._indexed and self._indexed[0][0] <= watermark:
            _, keys = self._indexed.popleft()
            for key in keys:
                entry = self._contents.get(key)
                if entry is not None and entry[0] <= watermark:
                    del self._contents[key]

    def _index(self) -> None:
        while self._unindexed:
            append = self._unindexed.popleft()
            contents, keys = self._contents, untracked(list[ContentKey]())
            lsn = append.lsn
            discarded: tuple[Lsn, Message | None] = (lsn, None)
            for change in append.changes:
                if isinstance(change, Discarded):
                    key = content_key(change.message_id, change.is_spilled)
                    contents[key] = discarded
                    keys.append(key)
                elif isinstance(change, Stored):
                    key = content_key(change.message_id, change.is_spilled)
                    contents[key] = (lsn, change.message)
                    keys.append(key)
            if keys:
                self._indexed.append((lsn, keys))


def content_key(message_id: int, is_spilled: bool) -> ContentKey:
    """Return the key of a content, distinct for both kinds."""
    return ContentKey(-message_id if is_spilled else message_id)


def as_stored(message: Message) -> StoredMessage:
    """Return a content in the form in which the store reads it."""
    header = message.header
    return StoredMessage(message.exchange, message.routing_key, header.format.name, header.stored_raw, message.body)
