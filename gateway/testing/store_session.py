"""The test harness of a store's contract: a place for its data, and a session that checks every callback."""

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Protocol

from gateway.kernel.journal.changes import Change, Enqueued, Lsn, Put, Recovered, SetAside, StreamSegment
from gateway.kernel.journal.records.entity import Entity
from gateway.kernel.journal.records.topology import QueueRecord, VhostRecord
from gateway.kernel.journal.store import Store
from gateway.kernel.messages.message import Header, Message, Properties
from gateway.kernel.messages.native_header import NativeFormat
from gateway.kernel.messages.stored_message import StoredMessage

#: How many commits a store may need to move a segment into a file.
_COMMITS_UNTIL_FILED: Final = 200


class StorePlace(Protocol):
    """One place, initially empty, where an engine keeps its data."""

    def open(self) -> Store:
        """Open the store with the data of earlier runs. At most one is open at a time."""
        ...

    def pump(self, until: Callable[[], bool]) -> None:
        """Make the calls the store asks for, on this thread, until ``until()`` is true.

        Raise an exception on a timeout.
        """
        ...

    def crash(self) -> None:
        """Crash the open store, as if its process died: unreported changes may be lost."""
        ...

    def close(self) -> None:
        """Close the store if it is open, and remove the data. Called once, at the end of the check."""
        ...


class StoreSession:
    """An open store with a listener that fails on any wrong callback."""

    def __init__(self, place: StorePlace) -> None:
        self.place = place
        self.open()

    def open(self) -> None:
        """Open the store, keep the recovered changes as ``found``, and reset the counters."""
        self.appended = self.watermark = Lsn(0)
        self._thread = threading.get_ident()
        self._is_appending = False
        self.store = self.place.open()
        self.store.listen(self)
        self.found = list(self.store.recover())

    def append(self, *changes: Change) -> Lsn:
        """Append, and check the position."""
        self._is_appending = True
        lsn = self.store.append(list(changes))
        self._is_appending = False
        self.appended = Lsn(self.appended + 1)
        assert lsn == self.appended, f"append number {self.appended} was given the position {lsn}"
        return lsn

    def settle(self) -> None:
        """Wait until everything appended is reported durable."""
        self.place.pump(lambda: self.watermark >= self.appended)

    def crash(self) -> None:
        """Crash now and recover."""
        self.place.crash()
        self.open()

    def crash_settled(self) -> None:
        """Crash after everything was reported durable, and recover."""
        self.settle()
        self.crash()

    def filed(self, stream_id: int, first: int) -> Path | None:
        """Return the file of a sealed segment, waiting for the store to write it; ``None`` if it writes none."""
        for _ in range(_COMMITS_UNTIL_FILED):
            if (path := self.store.segment_path(stream_id, first)) is not None:
                return path
            self.append()
            self.settle()
        return None

    def content(self, message_id: int) -> StoredMessage | None:
        """Return the content of one message."""
        return self.store.messages([message_id])[0]

    # Callbacks of the store

    def on_durable(self, watermark: Lsn) -> None:
        """Check that the watermark rises, at most to the last append."""
        self._check_call("on_durable")
        assert watermark > self.watermark, f"the watermark went from {self.watermark} to {watermark}: it must rise"
        assert watermark <= self.appended, f"{watermark} is reported durable, but only {self.appended} was appended"
        self.watermark = watermark

    def on_refused(self, reason: str) -> None:
        """Fail: everything a check appends is writable."""
        raise AssertionError(f"the store refused a change: {reason}")

    def on_set_aside(self, aside: SetAside) -> None:
        """Check the thread and the time of the call."""
        self._check_call("on_set_aside")

    def on_stalled(self, reason: str) -> None:
        """Check the thread and the time of the call."""
        self._check_call("on_stalled")

    def on_resumed(self) -> None:
        """Check the thread and the time of the call."""
        self._check_call("on_resumed")

    def on_failed(self, reason: str) -> None:
        """Fail: no check makes a store fail."""
        raise AssertionError(f"the store failed: {reason}")

    def _check_call(self, call: str) -> None:
        assert not self._is_appending, f"{call} was called from inside append"
        assert threading.get_ident() == self._thread, f"{call} was called on another thread than the kernel's"


class _Format(NativeFormat):
    """A header format that is never decoded."""

    name = "check"

    def header(self, raw: bytes) -> Header:
        """Return a persistent header."""
        return Header(self, raw, is_persistent=True)

    def properties(self, raw: bytes) -> Properties:
        """Return no properties."""
        return Properties()


def message_with(message_id: int, body: bytes = b"body", exchange: str = "x", routing_key: str = "key") -> Message:
    """Return a message with an id from the kernel."""
    message = Message(exchange, routing_key, _Format().header(b"header %d" % message_id), body)
    message.id = message_id
    return message


def content_of(message: Message) -> StoredMessage:
    """Return the content that the store returns for a message."""
    return StoredMessage(message.exchange, message.routing_key, "check", message.header.raw, message.body)


def queue_record(queue_id: int) -> QueueRecord:
    """Return a durable queue with this id."""
    return QueueRecord("/", f"q{queue_id}", queue_id, False, {})


def vhost_record(name: str, description: str = "") -> VhostRecord:
    """Return a virtual host of this name."""
    return VhostRecord(name, description, [], "classic", False, {}, {})


def entities_in(changes: Iterable[Recovered]) -> list[Entity]:
    """Return the entities in ``Put`` changes."""
    return [change.entity for change in changes if isinstance(change, Put)]


def places_in(changes: Iterable[Recovered]) -> list[tuple[int, int, int, int, int]]:
    """Return position, queue, message, time and delivery count of each ``Enqueued``."""
    return [
        (change.position, change.queue_id, change.message_id, change.enqueued_at_ms, change.delivery_count)
        for change in changes
        if isinstance(change, Enqueued)
    ]


def segments_in(changes: Iterable[Recovered]) -> list[StreamSegment]:
    """Return the segments of streams."""
    return [change for change in changes if isinstance(change, StreamSegment)]
