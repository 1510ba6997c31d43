"""What was appended and is not yet reported durable, kept readable until then."""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NewType

from gateway.kernel.journal.changes import Change, Discarded, Lsn, SetAside, Stored
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.stored_message import StoredMessage
from gateway_lmdb.quarantine import Quarantined
from gateway_lmdb.stream_batch import Filed

ContentKey = NewType("ContentKey", int)
"""A message id, negative for spilled content; ids count from 1."""


class Append:
    """One call of ``Store.append``, or one of the engine's own: its position and changes."""

    __slots__ = ("changes", "lsn")

    def __init__(self, lsn: Lsn, changes: Sequence[Change | Filed | Quarantined]) -> None:
        self.lsn = lsn
        self.changes = changes


class Staged:
    """The appends above the watermark, and the contents they store or discard.

    A ``StoreListener`` that lives on the kernel's thread alone. Appending only remembers; the index of contents is
    built when someone reads, and each append is indexed once.
    """

    def __init__(self) -> None:
        self._unindexed: deque[Append] = deque()
        self._indexed: deque[tuple[Lsn, ContentKey]] = deque()
        self._contents: dict[ContentKey, tuple[Lsn, Message | None]] = {}

    def add(self, append: Append) -> None:
        """Remember an append."""
        self._unindexed.append(append)

    def find(self, key: ContentKey) -> tuple[bool, StoredMessage | None]:
        """Say whether anything staged concerns this content, and what it is by now: ``None`` once discarded."""
        self._index()
        entry = self._contents.get(key)
        if entry is None:
            return False, None
        message = entry[1]
        return True, None if message is None else as_stored(message)

    def on_durable(self, watermark: Lsn) -> None:
        """Let go of everything up to ``watermark``; it is read from disk from now on."""
        while self._unindexed and self._unindexed[0].lsn <= watermark:
            self._unindexed.popleft()
        while self._indexed and self._indexed[0][0] <= watermark:
            _, key = self._indexed.popleft()
            entry = self._contents.get(key)
            if entry is not None and entry[0] <= watermark:
                del self._contents[key]

    def on_refused(self, reason: str) -> None:
        """Keep everything: the watermark will tell."""

    def on_set_aside(self, aside: SetAside) -> None:
        """Keep everything: what is set aside was on disk."""

    def on_stalled(self, reason: str) -> None:
        """Keep everything: it is still to be written."""

    def on_resumed(self) -> None:
        """Keep everything: the watermark will tell."""

    def on_failed(self, reason: str) -> None:
        """Keep what there is readable; the broker is about to end."""

    def _index(self) -> None:
        while self._unindexed:
            append = self._unindexed.popleft()
            for key, message in _contents(append):
                self._contents[key] = (append.lsn, message)
                self._indexed.append((append.lsn, key))


def _contents(append: Append) -> Iterator[tuple[ContentKey, Message | None]]:
    for change in append.changes:
        if isinstance(change, Stored):
            yield content_key(change.message_id, change.is_spilled), change.message
        elif isinstance(change, Discarded):
            yield content_key(change.message_id, change.is_spilled), None


def content_key(message_id: int, is_spilled: bool) -> ContentKey:
    """Return what tells a content from the others, the two kinds from each other."""
    return ContentKey(-message_id if is_spilled else message_id)


def as_stored(message: Message) -> StoredMessage:
    """Return the content as the store gives it back."""
    header = message.header
    return StoredMessage(message.exchange, message.routing_key, header.format.name, header.kept, message.body)
