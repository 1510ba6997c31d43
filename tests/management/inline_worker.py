"""The columnar worker without a process: the same requests and answers, one turn later."""

from collections.abc import Callable
from typing import Any

from twisted.internet.task import Clock

from gateway.columnar.encoding.worker import Worker
from gateway.kernel.journal.changes import StreamSegment
from gateway.kernel.streams.stream import Stream
from gateway.worker_process.framing import Frame
from gateway.worker_process.process import WorkerAnswer


class InlineWorker:
    """Answers requests when the clock advances; ``error`` is the answer instead, if set.

    ``requests`` counts the requests, ``encoded`` those for the file of a segment.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._worker = Worker()
        self.error: str | None = None
        self.requests = 0
        self.encoded = 0
        self.wanted: set[str] = set()

    def ask(
        self, head: dict[str, Any], payload: bytes, answered: Callable[[WorkerAnswer], None], *, is_urgent: bool = False
    ) -> None:
        def answer() -> None:
            done = self._worker.answer(Frame(head, payload))
            answered(WorkerAnswer(done.head, done.payload, self.error or done.head.get("error")))

        self.requests += 1
        self._clock.callLater(0, answer)

    # Methods of SegmentEncoder

    def encode_from_now_on(self, stream: Stream) -> None:
        """Record a stream that is read."""
        self.wanted.add(stream.name)

    def encode_now(self, stream: Stream, segment: StreamSegment, done: Callable[[bool], None]) -> None:
        """Write the file of a segment, unless ``error`` is set."""
        path = stream.segment_path(segment.first)
        place = {"vhost": stream.vhost_name, "queue": stream.name, "partition": 0, "path": str(path)}
        self.encoded += 1
        self.ask({"do": "segment", **place}, b"", lambda answer: done(answer.error is None))
