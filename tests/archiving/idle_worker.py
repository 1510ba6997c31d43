"""A worker that records requests and answers them only when a test says so."""

from collections.abc import Callable
from pathlib import Path

from gateway.worker_process.framing import Head
from gateway.worker_process.process import WorkerAnswer
from gateway_memory import MemoryStore


class IdleWorker:
    """Stands in for ``WorkerProcess``."""

    def __init__(self) -> None:
        self.requested: list[tuple[Head, bytes, bool]] = []
        self._answered: list[Callable[[WorkerAnswer], None]] = []

    def ask(
        self, head: Head, payload: bytes, answered: Callable[[WorkerAnswer], None], *, is_urgent: bool = False
    ) -> None:
        self.requested.append((head, payload, is_urgent))
        self._answered.append(answered)

    @property
    def heads(self) -> list[Head]:
        return [head for head, _, _ in self.requested]

    def answer(self, error: str | None = None) -> None:
        """Answer the oldest request."""
        self._answered.pop(0)(WorkerAnswer({"files": ["a.parquet"]}, b"", error))


class SegmentFileStore(MemoryStore):
    """The memory engine, with segments in files after ``put_into``."""

    directory: Path | None = None

    def put_into(self, directory: Path) -> None:
        self.directory = directory

    def segment_path(self, stream_id: int, first: int) -> Path | None:
        return None if self.directory is None else self.directory / f"{stream_id}-{first:020}.chunks"
