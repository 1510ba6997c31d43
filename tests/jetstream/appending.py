"""A node that owns a log and appends to it without a pause, with accounts of what was acknowledged."""

from gateway.cluster.log_replay import LogRecord, replay
from gateway.cluster.log_writer import LogWriter
from gateway.cluster.queue_log import Claim, Epoch, QueueId, QueueLogs
from gateway.kernel.clock import Clock

#: Records that wait for their acknowledgement at most.
_WINDOW = 32


class Appender:
    """Appends records with the text ``queue.epoch.n``. Owns its writer and the list of acknowledged texts."""

    def __init__(self, logs: QueueLogs, clock: Clock) -> None:
        self._logs = logs
        self._clock = clock
        self.claim: Claim | None = None
        self.read: list[LogRecord] = []
        self.acknowledged: list[bytes] = []
        self.stalls = 0
        self.is_deposed = False
        self._sent: list[tuple[int, bytes]] = []
        self._writer: LogWriter | None = None
        self._is_finishing = False

    async def begin(self, queue: QueueId, node: str, expected: Epoch) -> None:
        """Claim the queue, read its log and begin."""
        self.claim = await self._logs.claim(queue, node, expected)
        end = await replay(self._logs, self.claim, self.read.append)
        self._writer = LogWriter(self._logs, self._clock, self.claim, end, self)
        self._fill()

    @property
    def is_idle(self) -> bool:
        """Whether everything was acknowledged, or nothing more will be."""
        return self.is_deposed or not self._sent

    def finish(self) -> None:
        """Append nothing more; what was appended is still acknowledged."""
        self._is_finishing = True

    def close(self) -> None:
        """Stop at once."""
        self._is_finishing = True
        if self._writer is not None:
            self._writer.close()

    def on_durable(self, index: int) -> None:
        """Note what is stored, and go on."""
        while self._sent and self._sent[0][0] <= index:
            self.acknowledged.append(self._sent.pop(0)[1])
        self._fill()

    def on_deposed(self, reason: str) -> None:
        """Note that there is another owner."""
        self.is_deposed = True

    def on_stalled(self, reason: str) -> None:
        """Count a stall."""
        self.stalls += 1

    def on_resumed(self) -> None:
        """Do nothing."""

    def _fill(self) -> None:
        assert self._writer is not None
        assert self.claim is not None
        while not self._is_finishing and len(self._sent) < _WINDOW:
            number = len(self.acknowledged) + len(self._sent)
            text = b"%d.%d.%d" % (self.claim.queue, self.claim.epoch, number)
            self._sent.append((self._writer.append(text), text))
