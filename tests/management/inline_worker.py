"""The columnar worker without a process: the same requests and answers, a turn later."""

from collections.abc import Callable
from typing import Any

from twisted.internet.task import Clock

from gateway.columnar.encoding.worker import Worker
from gateway.kernel.journal.changes import StreamSegment
from gateway.kernel.streams.stream import Stream
from gateway.worker_process.framing import Frame
from gateway.worker_process.process import WorkerAnswer


class InlineWorker:
    """Answers what is asked when the clock moves on; ``error`` is what it answers instead, if set.

    ``asked`` counts the requests, ``encoded`` those for the file of a segment.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._worker = Worker()
        self.error: str | None = None
        self.asked = 0
        self.encoded = 0
        self.wanted: set[str] = set()

    def ask(
        self, head: dict[str, Any], payload: bytes, answered: Callable[[WorkerAnswer], None], *, is_urgent: bool = False
    ) -> None:
        def answer() -> None:
            done = self._worker.answer(Frame(head, payload))
            answered(WorkerAnswer(done.head, done.payload, self.error or done.head.get("error")))

        self.asked += 1
        self._clock.callLater(0, answer)

    # As the encoder of segments

    def encode_from_now_on(self, stream: Stream) -> None:
        """Take note of a stream that is read."""
        self.wanted.add(stream.name)

    def encode_now(self, stream: Stream, segment: StreamSegment, done: Callable[[bool], None]) -> None:
        """Write the file of a segment, unless that is to fail."""
        path = stream.segment_path(segment.first)
        place = {"vhost": stream.vhost_name, "queue": stream.name, "partition": 0, "path": str(path)}
        self.encoded += 1
        self.ask({"do": "segment", **place}, b"", lambda answer: done(answer.error is None))
