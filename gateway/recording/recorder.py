"""The recorder of a node: starts and ends recordings, and decides which connections are recorded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from gateway.logs import StructuredLog
from gateway.recording.file import RecordingFile

_log: Final = StructuredLog("recording")

#: Why the rest of a connection is missing.
_TOO_SLOW: Final = "the disk is too slow"
_STOPPED: Final = "the recording ended"


@dataclass(frozen=True, slots=True)
class RecordingRules:
    """The settings of a recording: see ``[recording]``. No ``listeners`` are all of them."""

    enabled: bool = False
    listeners: frozenset[str] = frozenset()
    hides_bodies: bool = True
    max_size: int = 256 * 2**20
    max_connections: int = 1000


class RecordedConnection:
    """A connection that is recorded, until its end or the end of the recording."""

    __slots__ = ("_file", "_number", "_recorder")

    def __init__(self, recorder: "Recorder", file: RecordingFile, number: int) -> None:
        self._recorder = recorder
        self._file: RecordingFile | None = file
        self._number = number

    def received(self, data: bytes) -> None:
        """Record what the client sent in one read."""
        at_s, number = self._recorder.now_s(), self._number
        if (file := self._file_for(len(data))) is not None:
            file.put(lambda writer: writer.received(at_s, number, data), len(data))

    def sent(self, data: bytes) -> None:
        """Record what the broker sent in one write."""
        at_s, number = self._recorder.now_s(), self._number
        if (file := self._file_for(len(data))) is not None:
            file.put(lambda writer: writer.sent(at_s, number, data), len(data))

    def closed(self, by: str) -> None:
        """Record the end: by the ``client``, by the ``server``, or ``broken``."""
        at_s, number = self._recorder.now_s(), self._number
        file, self._file = self._file, None
        if file is not None:
            file.put(lambda writer: writer.closed(at_s, number, by))
            self._recorder.ended(self)

    def stop(self, reason: str = _STOPPED) -> None:
        """Record no more: the rest is missing."""
        at_s, number = self._recorder.now_s(), self._number
        file, self._file = self._file, None
        if file is not None:
            file.put(lambda writer: writer.incomplete(at_s, number, reason))
            self._recorder.ended(self)

    def _file_for(self, size: int) -> RecordingFile | None:
        """Return the file if it has room; without room the connection is recorded no more."""
        file = self._file
        if file is None or file.has_room(size):
            return file
        if not file.is_over:
            self._recorder.incomplete += 1
        self.stop(_TOO_SLOW)
        return None


class Recorder:
    """Owns the current recording. All calls are made on the kernel's thread.

    ``recorded``, ``left_out`` and ``incomplete`` count the connections of the recording: those in it, those beyond
    ``max_connections``, and those whose rest is missing because the disk was too slow.
    """

    def __init__(self, directory: Path, wall_ms: Callable[[], int], monotonic_s: Callable[[], float]) -> None:
        self.recorded = self.left_out = self.incomplete = 0
        self._rules = RecordingRules()
        self._directory = directory
        self._wall_ms = wall_ms
        self._monotonic_s = monotonic_s
        self._file: RecordingFile | None = None
        self._error = ""
        self._began_s = 0.0
        self._began_at = ""
        self._open: dict[RecordedConnection, None] = {}

    def apply(self, rules: RecordingRules) -> None:
        """Apply settings: start or end the recording. A running one goes on with its own limits of file and bodies."""
        was_enabled, self._rules = self._rules.enabled, rules
        if rules.enabled and not was_enabled:
            self.start()
        elif was_enabled and not rules.enabled:
            self.stop()

    def start(self) -> str:
        """Start a recording unless one runs; return why it cannot, empty if it runs."""
        if self._file is not None and not self._file.is_over:
            return ""
        self.stop()
        moment = datetime.fromtimestamp(self._wall_ms() / 1000, UTC)
        self._began_at = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        path = self._directory / f"{moment:%Y%m%dT%H%M%S}-{self._wall_ms() % 1000:03}.jsonl"
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = RecordingFile(
                path, self._rules.max_size, self._began_at, hides_bodies=self._rules.hides_bodies
            )
        except OSError as error:
            self._error = f"the file '{path}' cannot be created: {error.strerror}"
            _log.error("recording failed", reason=self._error)
            return self._error
        self._error = ""
        self._began_s = self._monotonic_s()
        self.recorded = self.left_out = self.incomplete = 0
        _log.info("recording started", file=str(path), bodies="masked" if self._rules.hides_bodies else "kept")
        return ""

    def stop(self, *, waits: bool = False) -> None:
        """End the recording; with ``waits``, after everything is on the disk."""
        file = self._file
        if file is None:
            return
        for connection in list(self._open):
            connection.stop()
        self._file = None
        file.close(waits=waits)
        _log.info("recording ended", file=str(file.path), size=file.size, **_end_of(file))

    def opened(self, listener: str, peer: str) -> RecordedConnection | None:
        """Return the recording of a new connection; ``None`` if it is not recorded."""
        file, rules = self._file, self._rules
        if file is None or file.is_over or (rules.listeners and listener not in rules.listeners):
            return None
        if len(self._open) >= rules.max_connections or not file.has_room(0):
            self.left_out += 1
            return None
        self.recorded += 1
        at_s, number = self.now_s(), self.recorded
        connection = RecordedConnection(self, file, number)
        self._open[connection] = None
        file.put(lambda writer: writer.opened(at_s, number, listener, peer))
        return connection

    def ended(self, connection: RecordedConnection) -> None:
        """Forget a connection."""
        self._open.pop(connection, None)

    def now_s(self) -> float:
        """Return the time since the recording began, in seconds."""
        return self._monotonic_s() - self._began_s

    @property
    def is_on(self) -> bool:
        """Whether a recording runs."""
        return self._file is not None and not self._file.is_over

    @property
    def shown(self) -> Mapping[str, Any]:
        """The state for operators."""
        file = self._file
        if file is None:
            return {"state": "failed" if self._error else "off", "error": self._error}
        return {
            "state": "full" if file.is_full else "failed" if file.error else "recording",
            "error": file.error,
            "file": str(file.path),
            "started_at": self._began_at,
            "size": file.size,
            "open_connections": len(self._open),
            "connections": self.recorded,
            "left_out": self.left_out,
            "incomplete": self.incomplete,
        }


def _end_of(file: RecordingFile) -> dict[str, str]:
    if file.is_full:
        return {"reason": "recording.max_size is reached"}
    return {"reason": file.error} if file.error else {}
