"""Size and compaction of the node's store files."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from gateway.kernel.broker.broker import Broker
from gateway.kernel.errors import StorageError
from gateway.kernel.events import Event
from gateway.kernel.messages.message import Value

if TYPE_CHECKING:
    from gateway_lmdb import LmdbStore
    from gateway_lmdb.compaction import CompactionProgress

#: Interval between two checks whether a compaction is due, in seconds.
INTERVAL_S: Final = 60.0

#: Share of the file that must be free before a compaction is due.
_LEAST_SHARE: Final = 0.5

_EVENTS: Final[Mapping[str, str]] = {
    "copying": "store.compacting",
    "catching up": "store.compaction_catches_up",
    "done": "store.compacted",
    "failed": "store.compaction_failed",
}


class StoreFiles:
    """Reports the files of an LMDB store and compacts them: on request, and when ``compact_at`` bytes are free.

    ``store`` is ``None`` if nothing is kept in files.
    """

    def __init__(self, compact_at: int) -> None:
        self.store: LmdbStore | None = None
        self.broker: Broker | None = None
        self._compact_at = compact_at

    def compact(self) -> bool:
        """Start a compaction; return ``False`` if there is nothing to compact or one is running."""
        return self.store is not None and self.store.compact()

    def check(self) -> None:
        """Compact if due. :raises StorageError: if the store cannot be read."""
        store = self.store
        if store is None or not self._compact_at or not (store.compaction is None or store.compaction.is_over):
            return
        usage = store.usage
        if usage.free_bytes >= self._compact_at and usage.free_bytes >= usage.file_bytes * _LEAST_SHARE:
            store.compact()

    def log_progress(self, progress: "CompactionProgress") -> None:
        """Log the progress of a compaction."""
        event = _EVENTS.get(progress.state)
        if self.broker is None or event is None:
            return
        details: dict[str, Value] = {"before": progress.before}
        if progress.state == "copying":
            details["of"] = progress.of
        if progress.is_over:
            details |= {"after": progress.after, "seconds": round(progress.seconds, 1)}
        if progress.reason:
            details["reason"] = progress.reason
        self.broker.events.emit(Event(event, details=details))

    def facts(self) -> dict[str, Any]:
        """Return sizes in bytes and the progress of a compaction, for the API; empty if there are no files."""
        if self.store is None:
            return {}
        usage, progress = self.store.usage, self.store.compaction
        facts: dict[str, Any] = {
            "file_bytes": usage.file_bytes,
            "used_bytes": usage.used_bytes,
            "free_bytes": usage.free_bytes,
            "compaction": None,
        }
        if progress is not None:
            facts["compaction"] = {
                "state": progress.state,
                "copied_bytes": progress.copied,
                "of_bytes": progress.of,
                "before_bytes": progress.before,
                "after_bytes": progress.after,
                "seconds": round(progress.seconds, 3),
                "reason": progress.reason,
            }
        return facts


def ignoring_read_errors(check: Callable[[], None]) -> Callable[[], None]:
    """Return the same check, which ignores read errors: the writer of the store reports them."""

    def checked() -> None:
        try:
            check()
        except StorageError:
            return

    return checked
