"""Metadata in memory."""

from gateway.cluster.errors import Outdated
from gateway.cluster.metadata import NEVER, Key, MetadataEntry, MetadataWatcher, Revision
from gateway.kernel.clock import Clock


class MemoryMetadata:
    """Keys and values, shared by the nodes of one process. Watchers are called in later turns of the clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._revision = 0
        self._entries: dict[Key, MetadataEntry] = {}
        self._watches: list[MemoryWatch] = []

    async def get(self, key: Key) -> MetadataEntry | None:
        """Return the last write of a key."""
        return self._entries.get(key)

    async def put(self, key: Key, value: bytes, expected: Revision) -> Revision:
        """Write a value. :raises Outdated: if the last revision is not the expected one."""
        return self._write(key, value, expected)

    async def delete(self, key: Key, expected: Revision) -> Revision:
        """Delete a key. :raises Outdated: if the last revision is not the expected one."""
        return self._write(key, None, expected)

    def watch(self, prefix: Key, watcher: MetadataWatcher) -> "MemoryWatch":
        """Report the keys below a prefix, and each later write of one."""
        watch = MemoryWatch(self._watches, prefix, watcher)
        self._watches.append(watch)
        entries = sorted(self._entries.values(), key=lambda entry: entry.revision)
        for entry in entries:
            self._report(watch, entry)
        self._clock.call_later(0, watch.report_current)
        return watch

    def _write(self, key: Key, value: bytes | None, expected: Revision) -> Revision:
        entry = self._entries.get(key)
        revision = NEVER if entry is None else entry.revision
        if revision != expected:
            raise Outdated(f"{key} has revision {revision}, not {expected}")
        self._revision += 1
        written = self._entries[key] = MetadataEntry(key, value, Revision(self._revision))
        for watch in self._watches:
            self._report(watch, written)
        return written.revision

    def _report(self, watch: "MemoryWatch", entry: MetadataEntry) -> None:
        if watch.covers(entry.key):
            self._clock.call_later(0, lambda: watch.report(entry))


class MemoryWatch:
    """A watch, until it is stopped."""

    def __init__(self, watches: "list[MemoryWatch]", prefix: Key, watcher: MetadataWatcher) -> None:
        self._watches = watches
        self._prefix = prefix
        self._watcher: MetadataWatcher | None = watcher

    def covers(self, key: Key) -> bool:
        """Whether a key begins with the prefix, and has more parts."""
        return len(key) > len(self._prefix) and key[: len(self._prefix)] == self._prefix

    def report(self, entry: MetadataEntry) -> None:
        """Report a write."""
        if self._watcher is not None:
            self._watcher.on_entry(entry)

    def report_current(self) -> None:
        """Report that the keys of the beginning are complete."""
        if self._watcher is not None:
            self._watcher.on_current()

    def stop(self) -> None:
        """Make no more calls."""
        if self._watcher is not None:
            self._watcher = None
            self._watches.remove(self)
