"""The store of a node: opens it, reports its size, and compacts its files."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gateway.config import Settings
from gateway.kernel.broker.broker import Broker
from gateway.kernel.errors import StorageError
from gateway.kernel.events import Event
from gateway.kernel.journal.store import Store
from gateway.kernel.messages.message import Value
from gateway.logs import StructuredLog
from gateway.node.data_directory import COPY, make_private

if TYPE_CHECKING:
    from gateway_lmdb import LmdbStore
    from gateway_lmdb.compaction import CompactionProgress

_log: Final = StructuredLog("node")

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


def open_store(settings: Settings, reactor: Any, files: "StoreFiles") -> Store:
    """Open the store that the settings name; ``files`` gets one that has files. ``reactor`` is Twisted's.

    A simulation opens its own (``NodeHost.open_store``).

    :raises StorageError: when the data directory cannot be used.
    """
    _make_private(settings.data)
    if (settings.data / COPY).is_dir():
        advice = "start the node with cluster.servers, or use another directory"
        _log.warning("data of a cluster is not used", directory=str(settings.data / COPY), advice=advice)
    if settings.storage.engine == "memory":
        from gateway_memory import MemoryStore

        return MemoryStore(defer=lambda call: reactor.callLater(0, call))
    from gateway_lmdb import LmdbStore

    file = settings.data / "data.mdb"
    with suppress(FileNotFoundError):
        if file.stat().st_size == 0:  # an interrupted first start, or the file was truncated
            _log.warning("data.mdb is empty, the broker starts without messages and entities", file=str(file))
    files.store = LmdbStore(settings.data, call_in_kernel=reactor.callFromThread, on_compaction=files.log_progress)
    return files.store


def _make_private(data: Path) -> None:
    changed = 0
    try:
        changed = make_private(data)
    except PermissionError as error:
        if not data.is_dir():
            raise StorageError(f"the data directory {data} cannot be used: {error.strerror}") from None
        _log.warning("data directory open to others", directory=str(data), reason="it is another user's")
    except OSError as error:
        raise StorageError(f"the data directory {data} cannot be used: {error.strerror}") from None
    if changed:
        _log.warning("data directory made private", directory=str(data), entries=changed)


class StoreFiles:
    """Reports on the files of an LMDB store, and compacts them: on request, and when ``compact_at`` bytes are free.

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
        """Compact if due. Read errors are ignored: the writer of the store reports them."""
        store = self.store
        if store is None or not self._compact_at or not (store.compaction is None or store.compaction.is_over):
            return
        try:
            usage = store.usage
        except StorageError:
            return
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

    def info(self) -> dict[str, Any]:
        """Return sizes in bytes and the progress of a compaction, for the API; empty if there are no files."""
        if self.store is None:
            return {}
        usage, progress = self.store.usage, self.store.compaction
        info: dict[str, Any] = {
            "file_bytes": usage.file_bytes,
            "used_bytes": usage.used_bytes,
            "free_bytes": usage.free_bytes,
            "compaction": None,
        }
        if progress is not None:
            info["compaction"] = {
                "state": progress.state,
                "copied_bytes": progress.copied,
                "of_bytes": progress.of,
                "before_bytes": progress.before,
                "after_bytes": progress.after,
                "seconds": round(progress.seconds, 3),
                "reason": progress.reason,
            }
        return info
