"""Reading a log after a claim: every record from the floor on, in order, or an error; never one with a hole."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.cluster.batches import LogBatch, decode_batch
from gateway.cluster.errors import LogDamaged, LogGap
from gateway.cluster.queue_log import Claim, Position, QueueLogs, StoredBatch

#: How often a log is read, each time from other copies, before it is given up.
MOST_READS: Final = 6


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record of a log; indexes rise by one."""

    index: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """A stored batch: its number, the index of its first record, where it is."""

    number: int
    first_index: int
    position: Position


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of a log: the next batch and record, the first batch that is needed, and the batches from it on."""

    next_number: int
    next_index: int
    floor: int
    batches: tuple[BatchPlace, ...]


async def replay(logs: QueueLogs, claim: Claim, take: Callable[[LogRecord], None]) -> LogEnd:
    """Give each record before a claim to ``take``, in order, each once; return where the log ends.

    A batch that is missing or damaged in one copy is read from another one. Records that were covered may come too.

    :raises LogDamaged: if no copy has it; the queue must not be served.
    :raises Deposed: if there is a later claim.
    :raises Unanswered: if the engine does not answer.
    """
    reading = LogReading(claim, take)
    gaps = []
    for _ in range(MOST_READS):
        try:
            reading.begin(await logs.last(claim))
            await logs.read(claim, reading.take_batch)
            return reading.end()
        except LogGap as gap:
            gaps.append(str(gap))
        await logs.read_elsewhere(claim)
    raise LogDamaged(f"the log of queue {claim.queue} is damaged in every copy that was read: {'; '.join(gaps)}")


class LogReading:
    """The state of a replay over several reads. Owns the pieces of a record that is not complete yet."""

    def __init__(self, claim: Claim, take: Callable[[LogRecord], None]) -> None:
        self._claim = claim
        self._take = take
        self._floor = 1
        self._last_number = 0
        #: The next batch; 0 until one was taken, because those below the floor do not count.
        self._next_number = 0
        self._next_index = 1
        self._epoch = 0
        self._pieces: list[bytes] = []
        self._lacks_beginning = False
        self._batches: list[BatchPlace] = []

    def begin(self, last: StoredBatch | None) -> None:
        """Begin a read of a log that ends with ``last`` in another copy. :raises LogGap: if that is damaged."""
        batch = None if last is None else self._decoded(last)
        self._last_number = 0 if batch is None else batch.number
        if self._next_number == 0:
            self._floor = 1 if batch is None else batch.floor

    def take_batch(self, stored: StoredBatch) -> None:
        """Take the next batch of a copy. :raises LogGap: if it is damaged, or not the next one."""
        batch = self._decoded(stored)
        expected = self._next_number or self._floor
        if batch.number < expected:  # below the floor, stored twice, or taken by an earlier read
            return
        if batch.number > expected:
            raise LogGap(f"batch {expected} of queue {self._claim.queue} is missing before batch {batch.number}")
        if not self._epoch <= batch.epoch < self._claim.epoch:
            raise LogGap(f"batch {batch.number} of queue {self._claim.queue} has epoch {batch.epoch} out of order")
        if batch.epoch != self._epoch or self._next_number == 0:  # the record of a former owner stays unfinished
            self._pieces.clear()
            self._epoch = batch.epoch
            self._lacks_beginning = batch.continues
        self._next_number = batch.number + 1
        self._batches.append(BatchPlace(batch.number, batch.first_index, stored.position))
        self._take_pieces(batch)

    def _take_pieces(self, batch: LogBatch) -> None:
        index = batch.first_index
        for piece in batch.pieces:
            self._pieces.append(piece.data)
            if piece.goes_on:
                continue
            if self._lacks_beginning:  # of a record below the floor
                self._lacks_beginning = False
                self._pieces.clear()
                index += 1
            else:
                payload = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
                self._pieces.clear()
                self._take(LogRecord(index, payload))
                index += 1
        self._next_index = index

    def end(self) -> LogEnd:
        """Return where the log ends. :raises LogGap: if the other copy has more."""
        reached = max(0, (self._next_number or self._floor) - 1)
        if reached < self._last_number:
            raise LogGap(f"batch {self._last_number} of queue {self._claim.queue} is missing at the end")
        return LogEnd(reached + 1, self._next_index, self._floor, tuple(self._batches))

    def _decoded(self, stored: StoredBatch) -> LogBatch:
        batch = decode_batch(stored.data)
        if batch.queue != self._claim.queue:
            raise LogGap(f"a batch of queue {batch.queue} is in the log of queue {self._claim.queue}")
        return batch
