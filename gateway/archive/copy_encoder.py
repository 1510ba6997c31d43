"""Encoding of sealed segments in the copy of a node that follows, when they are read."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.kernel.journal.changes import StreamSegment
from gateway.management.pipeline.copied_stream import CopiedStream

if TYPE_CHECKING:
    from gateway.worker_process.process import WorkerAnswer, WorkerProcess


class CopyEncoder:
    """Encodes segments of a copy during one epoch of its log, each once.

    The names of its files have the epoch: a stream of a later epoch may have the number of a deleted one, and what the
    worker has begun for that may end late. The store removes the files with their segments, and when it is opened.
    """

    def __init__(self, worker: "WorkerProcess", epoch: int) -> None:
        self._worker = worker
        self._epoch = epoch
        self._callers: dict[Path, list[Callable[[bool], None]]] = {}

    def arrow_path(self, chunks: Path) -> Path:
        """Return the path of a segment's Arrow file, beside its chunks."""
        return chunks.with_suffix(f".{self._epoch}.arrow")

    def encode_from_now_on(self, stream: CopiedStream) -> None:
        """Do nothing: a segment is encoded when it is read."""

    def encode_now(self, stream: CopiedStream, segment: StreamSegment, done: Callable[[bool], None]) -> None:
        """Encode a segment; call ``done`` with whether its file exists, now or later."""
        path = stream.segment_path(segment.first)
        if path is None or self.arrow_path(path).exists():
            done(path is not None)
        elif path in self._callers:
            self._callers[path].append(done)
        else:
            self._callers[path] = [done]
            head = {"do": "segment", "vhost": stream.vhost_name, "queue": stream.name, "partition": 0}
            head |= {"path": str(path.absolute()), "into": str(self.arrow_path(path).absolute())}
            self._worker.ask(head, b"", partial(self._on_answer, path), is_urgent=True)

    def _on_answer(self, path: Path, answer: "WorkerAnswer") -> None:
        is_there = answer.error is None and path.exists()
        if not is_there:  # truncated meanwhile: the store has removed its own files before
            with suppress(OSError):
                self.arrow_path(path).unlink(missing_ok=True)
        for done in self._callers.pop(path):
            done(is_there)
