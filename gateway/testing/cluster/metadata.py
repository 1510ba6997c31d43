"""The contract of the metadata, as a check for engines. ``METADATA_CHECKS`` holds the single checks."""

from collections.abc import Callable, Coroutine
from typing import Any, Final

from gateway.cluster.errors import Outdated
from gateway.cluster.metadata import NEVER, Key, MetadataEntry, Revision
from gateway.testing.cluster.place import ClusterPlace


def check_metadata(new_place: Callable[[], ClusterPlace]) -> None:
    """Check that an engine keeps every promise of ``gateway.cluster.metadata``.

    :raises AssertionError: for the first broken promise.
    """
    for check in METADATA_CHECKS:
        place = new_place()
        try:
            check(place)
        finally:
            place.close()


class SeenEntries:
    """A watcher that keeps what it gets."""

    def __init__(self) -> None:
        self.entries: list[MetadataEntry] = []
        self.current_after: int | None = None

    def on_entry(self, entry: MetadataEntry) -> None:
        """Keep a write."""
        self.entries.append(entry)

    def on_current(self) -> None:
        """Keep how many writes came before."""
        assert self.current_after is None, "on_current was called twice"
        self.current_after = len(self.entries)


def _is_refused(place: ClusterPlace, write: Coroutine[Any, Any, Revision]) -> bool:  # Any: as in ClusterPlace
    try:
        place.run(write)
    except Outdated:
        return True
    return False


def _a_key_that_was_never_written_is_not_there(place: ClusterPlace) -> None:
    assert place.run(place.metadata().get((place.new_name(), "a"))) is None


def _what_was_written_is_read_by_other_nodes_with_its_revision(place: ClusterPlace) -> None:
    key = (place.new_name(), "a")
    first = place.run(place.metadata().put(key, b"one", NEVER))
    second = place.run(place.metadata().put(key, b"", first))
    assert NEVER < first < second, f"revisions do not rise: {first}, {second}"
    found = place.run(place.metadata().get(key))
    assert found == MetadataEntry(key, b"", second), f"read {found}"


def _a_write_with_an_outdated_revision_is_refused_and_changes_nothing(place: ClusterPlace) -> None:
    metadata, key = place.metadata(), (place.new_name(), "a")
    first = place.run(metadata.put(key, b"one", NEVER))
    second = place.run(metadata.put(key, b"two", first))
    for expected in (NEVER, first, Revision(second + 1)):
        assert _is_refused(place, place.metadata().put(key, b"lost", expected)), f"written with revision {expected}"
        assert _is_refused(place, place.metadata().delete(key, expected)), f"deleted with revision {expected}"
    assert place.run(metadata.get(key)) == MetadataEntry(key, b"two", second)


def _a_key_is_created_once(place: ClusterPlace) -> None:
    key = (place.new_name(), "a")
    nodes = [place.metadata() for _ in range(3)]
    refused = [_is_refused(place, node.put(key, b"%d" % at, NEVER)) for at, node in enumerate(nodes)]
    assert refused == [False, True, True], f"of three creations were refused: {refused}"


def _a_deletion_is_the_last_write_of_its_key(place: ClusterPlace) -> None:
    metadata, key = place.metadata(), (place.new_name(), "a")
    first = place.run(metadata.put(key, b"one", NEVER))
    deleted = place.run(metadata.delete(key, first))
    assert place.run(metadata.get(key)) == MetadataEntry(key, None, deleted)
    assert _is_refused(place, metadata.put(key, b"two", NEVER)), "a deleted key was written as one that never was"
    assert _is_refused(place, metadata.put(key, b"two", first)), "a deleted key was written with its old revision"
    again = place.run(metadata.put(key, b"two", deleted))
    assert place.run(metadata.get(key)) == MetadataEntry(key, b"two", again)


def _keys_are_any_text(place: ClusterPlace) -> None:
    metadata, first = place.metadata(), place.new_name()
    parts = ("", "/", "a.b", "*", ">", "=", "=2F", "\u00e4\u20ac\U0001f600", " \r\n\t\0", "$KV")
    keys: list[Key] = [(first, part) for part in parts] + [(first, "a", "b"), (first, "a.b", "")]
    written = [
        MetadataEntry(key, repr(key).encode(), place.run(metadata.put(key, repr(key).encode(), NEVER))) for key in keys
    ]
    seen = SeenEntries()
    watch = place.metadata().watch((first,), seen)
    place.until(lambda: seen.current_after is not None)
    watch.stop()
    assert seen.entries == written, f"watched {seen.entries}"
    assert [place.run(metadata.get(key)) for key in keys] == written


def _a_watch_begins_with_what_is_there_and_goes_on(place: ClusterPlace) -> None:
    metadata, prefix = place.metadata(), place.new_name()
    one = place.run(metadata.put((prefix, "one"), b"1", NEVER))
    two = place.run(metadata.put((prefix, "two"), b"2", NEVER))
    one = place.run(metadata.put((prefix, "one"), b"3", one))
    two = place.run(metadata.delete((prefix, "two"), two))
    seen = SeenEntries()
    watch = place.metadata().watch((prefix,), seen)
    assert not seen.entries, "a watcher was called from inside watch"
    place.until(lambda: seen.current_after is not None)
    assert seen.current_after == 2
    three = place.run(metadata.put((prefix, "one", "deep"), b"4", NEVER))
    one = place.run(metadata.delete((prefix, "one"), one))
    place.until(lambda: len(seen.entries) >= 4)
    watch.stop()
    keys = [(entry.key[1:], entry.value) for entry in seen.entries]
    assert keys == [(("one",), b"3"), (("two",), None), (("one", "deep"), b"4"), (("one",), None)], f"watched {keys}"
    assert [entry.revision for entry in seen.entries][1:] == [two, three, one]
    revisions = [entry.revision for entry in seen.entries]
    assert revisions == sorted(set(revisions)), f"revisions do not rise: {revisions}"


def _a_watch_of_nothing_is_current_at_once(place: ClusterPlace) -> None:
    metadata, prefix = place.metadata(), place.new_name()
    place.run(metadata.put((prefix,), b"itself", NEVER))
    place.run(metadata.put((f"{prefix}-beside", "a"), b"beside", NEVER))
    seen = SeenEntries()
    watch = metadata.watch((prefix,), seen)
    place.until(lambda: seen.current_after is not None)
    watch.stop()
    assert seen.entries == [], f"watched {seen.entries} outside of the prefix"


def _a_stopped_watch_reports_nothing(place: ClusterPlace) -> None:
    metadata, prefix = place.metadata(), place.new_name()
    stopped, other = SeenEntries(), SeenEntries()
    watch = metadata.watch((prefix,), stopped)
    going_on = metadata.watch((prefix,), other)
    place.until(lambda: stopped.current_after is not None and other.current_after is not None)
    watch.stop()
    watch.stop()
    place.run(metadata.put((prefix, "a"), b"", NEVER))
    place.until(lambda: other.entries)
    going_on.stop()
    assert stopped.entries == [], f"a stopped watch reported {stopped.entries}"


METADATA_CHECKS: Final = (
    _a_key_that_was_never_written_is_not_there,
    _what_was_written_is_read_by_other_nodes_with_its_revision,
    _a_write_with_an_outdated_revision_is_refused_and_changes_nothing,
    _a_key_is_created_once,
    _a_deletion_is_the_last_write_of_its_key,
    _keys_are_any_text,
    _a_watch_begins_with_what_is_there_and_goes_on,
    _a_watch_of_nothing_is_current_at_once,
    _a_stopped_watch_reports_nothing,
)
