"""The archives of one virtual host, by exchange and queue."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway.kernel.archives.archive import Archive, ArchiveRules
from gateway.kernel.archives.blocked_publishers import BlockedPublishers
from gateway.kernel.archives.message_traces import TraceRules
from gateway.kernel.clock import drained
from gateway.kernel.events import Event
from gateway.kernel.journal.changes import Put, Removed
from gateway.kernel.journal.records.topology import ArchiveRecord
from gateway.kernel.streams.stream_log import StreamLog

if TYPE_CHECKING:
    from gateway.kernel.clock import Clock
    from gateway.kernel.events import Events
    from gateway.kernel.journal.changes import StreamSegment
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.message import Message, Value
    from gateway.kernel.messages.origin import Origin


@dataclass(slots=True)
class ArchiveContext:
    """The archive settings and callbacks that all virtual hosts share.

    ``on_sealed`` is called with each segment that is complete. ``blocked_publishers`` are the connections that publish
    faster than files are written. ``trace_rules`` are those of the traces in memory. ``tables`` are the names of the
    typed tables that policies may select, ``None`` where nothing can write tables.
    """

    rules: ArchiveRules = field(default_factory=ArchiveRules)
    trace_rules: TraceRules = field(default_factory=TraceRules)
    on_sealed: "Callable[[Archive, StreamSegment], None]" = lambda archive, segment: None
    blocked_publishers: BlockedPublishers = field(default_factory=BlockedPublishers)
    tables: frozenset[str] | None = frozenset()


class Archives:
    """The archives of one virtual host. Exchanges and queues open and retire them.

    ``overflowing`` maps each full archive to the last message it took, to find the publisher to block. ``on_change`` is
    called when an archive is added or removed.
    """

    def __init__(
        self,
        vhost_name: str,
        journal: "Journal",
        clock: "Clock",
        events: "Events",
        next_id: Callable[[], int],
        archive_context: ArchiveContext,
    ) -> None:
        self.overflowing: dict[Archive, Message] = {}
        self.clock = clock
        self.on_change: Callable[[], None] = lambda: None
        self._vhost_name = vhost_name
        self._journal = journal
        self._events = events
        self._next_id = next_id
        self._archive_context = archive_context
        self._archive_by_source: dict[tuple[str, str], Archive] = {}

    def __iter__(self) -> Iterator[Archive]:
        return iter(tuple(self._archive_by_source.values()))

    def __len__(self) -> int:
        return len(self._archive_by_source)

    @property
    def rules(self) -> ArchiveRules:
        """The limits of segments and of unexported data."""
        return self._archive_context.rules

    @property
    def trace_rules(self) -> TraceRules:
        """The sampling and the limits of the traces in memory."""
        return self._archive_context.trace_rules

    @property
    def now_ms(self) -> int:
        """Wall time in milliseconds."""
        return self._journal.now_ms

    # Opening and closing

    def open(self, source: str, name: str = "", table: str = "") -> Archive:
        """Return the archive of an exchange or queue; create it if it does not exist.

        Its messages from now on are for the typed table, or with ``""`` for the table of all archives.
        """
        archive = self._archive_by_source.get((source, name))
        if archive is None:
            tables: list[Value] = [[0, table]] if table else []
            record = ArchiveRecord(self._vhost_name, source, name, self._next_id(), self.now_ms, tables)
            archive = self._install(record)
            self._journal.record(Put(record))
            self._emit("archive.opened", archive)
        elif archive.table != table:
            archive.use_table(table)
            self._journal.record(Put(archive.record))
        archive.is_retired = False
        return archive

    def install(self, record: ArchiveRecord) -> StreamLog:
        """Build an archive from its record; return the log, for recovery to fill."""
        return self._install(record).log

    def retire(self, source: str, name: str = "") -> None:
        """Accept no more messages: export the rest, then remove the archive.

        Deferred to the next turn, because a feature that is applied again retires its archive and opens it at once.
        """
        archive = self._archive_by_source.get((source, name))
        if archive is not None and not archive.is_retired:
            archive.is_retired = True
            self.clock.call_later(0, lambda: self._close_when_exported(archive))

    def resume(self) -> None:
        """Resume after recovery; archives that no exchange and no queue has opened by then are retired."""
        for archive in self:
            archive.resume()
            for segment in archive.waiting:
                self.sealed(archive, segment)
            if archive.is_retired:
                self._close_when_exported(archive)

    def closing_all(self) -> Iterator[None]:
        """Return the steps that remove all archives with their unexported messages: the virtual host is deleted."""
        for archive in drained(list(self._archive_by_source.values())):
            if self._archive_by_source.get((archive.record.source, archive.record.name)) is archive:
                self.close(archive)
            yield

    def close(self, archive: Archive) -> None:
        """Remove an archive with everything that is still in its log."""
        archive.cancel()
        archive.waiting.clear()
        archive.log.erase()
        archive.is_full = False
        self._archive_context.blocked_publishers.release(archive)
        del self._archive_by_source[archive.record.source, archive.record.name]
        self._journal.record(Removed(archive.record.kind, archive.record.key))
        self._emit("archive.closed", archive)
        self.on_change()

    def _install(self, record: ArchiveRecord) -> Archive:
        log = StreamLog(record.id, self._journal, self.rules.segment_size)
        archive = Archive(record, self, log)
        archive.is_retired = True  # until an exchange or a queue claims it
        self._archive_by_source[record.source, record.name] = archive
        self.on_change()
        return archive

    def _close_when_exported(self, archive: Archive) -> None:
        if not archive.is_retired or archive not in self._archive_by_source.values():
            return
        archive.log.seal()
        if not len(archive.log):
            self.close(archive)

    # Messages

    def published(self, kept_by: "Iterable[Archive]", message: "Message", origin: "Origin | None") -> None:
        """Archive a message for the exchanges it passed; block its publisher if one of the archives is full."""
        for archive in kept_by:
            archive.keep(message)
        if self.overflowing:
            full = [archive for archive, kept in self.overflowing.items() if kept is message]
            self.overflowing.clear()
            if full and origin is not None:
                self._archive_context.blocked_publishers.hold(origin.connection, full)

    # Callbacks of archives

    def sealed(self, archive: Archive, segment: "StreamSegment") -> None:
        """Report a segment that is complete."""
        self._archive_context.on_sealed(archive, segment)

    def fullness_changed(self, archive: Archive) -> None:
        """Report that an archive became full, or has room again."""
        self._emit("archive.full" if archive.is_full else "archive.has_room", archive)
        if not archive.is_full:
            self._archive_context.blocked_publishers.release(archive)

    def _emit(self, event: str, archive: Archive) -> None:
        details = {"source": archive.record.source, "waiting_bytes": archive.waiting_bytes}
        self._events.emit(Event(event, self._vhost_name, archive.record.name, details))
