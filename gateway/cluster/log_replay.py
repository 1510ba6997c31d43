"""Reading a log after a claim: every record from the floor on, in order, or an error; never one with a hole."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.cluster.batches import LogBatch, decode_batch
from gateway.cluster.errors import LogDamaged, LogGap, ReadingOutdated
from gateway.cluster.gate import Gate
from gateway.cluster.queue_log import BEGINNING, UNCLAIMED, Claim, Epoch, Position, QueueId, QueueLogs, StoredBatch

#: How often a log is read, each time from other copies, before it is given up.
MOST_READS: Final = 6


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record of a log; indexes rise by one. ``epoch`` is that of the leader that wrote it."""

    index: int
    payload: bytes
    epoch: Epoch = UNCLAIMED


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
    return await read_rest(logs, claim, LogReading(claim.queue, take), Gate())


async def read_rest(
    logs: QueueLogs, claim: Claim, reading: "LogReading", gate: Gate, check: Callable[[], None] = lambda: None
) -> LogEnd:
    """Read what a reading lacks of the log before a claim, as ``replay`` does; ``check`` is called before each batch.

    :raises ReadingOutdated: if something that it lacks was removed: the log must be read from its beginning.
    """
    reading.require_before(claim)

    def take(stored: StoredBatch) -> None:
        check()
        reading.take_batch(stored)

    gaps = []
    for _ in range(MOST_READS):
        try:
            reading.begin(await logs.last(claim))
            await logs.read(claim, take, reading.position, gate)
            return reading.end()
        except LogGap as gap:
            gaps.append(str(gap))
        await logs.read_elsewhere(claim)
    raise LogDamaged(f"the log of queue {claim.queue} is damaged in every copy that was read: {'; '.join(gaps)}")


class LogReading:
    """The state of a reading of one log, over several reads and followings.

    A reading that begins without knowing the floor takes any batch as the first one, and ends only if the log has a
    floor at or after it. Owns the pieces of a record that is not complete yet.
    """

    def __init__(self, queue: QueueId, take: Callable[[LogRecord], None]) -> None:
        #: The place of the last batch that was taken.
        self.position = BEGINNING
        self._queue = queue
        self._take = take
        self._claim: Claim | None = None
        #: The first batch that is needed, ``None`` if that is not known yet.
        self._floor: int | None = None
        self._last_number = 0
        #: The first batch that was taken, and the next one; 0 until one was taken.
        self._first_number = self._next_number = 0
        self._next_index = 1
        self._epoch = 0
        self._pieces: list[bytes] = []
        self._lacks_beginning = False
        self._batches: list[BatchPlace] = []

    def require_before(self, claim: Claim) -> None:
        """End at a claim. :raises ReadingOutdated: if something after it was read: the log was another one."""
        if claim.epoch <= self.position:
            raise ReadingOutdated(f"the log was read up to position {self.position}, and is claimed at {claim.epoch}")
        self._claim = claim

    def begin(self, last: StoredBatch | None) -> None:
        """Begin a read of a log that ends with ``last`` in another copy.

        :raises LogGap: if that is damaged.
        :raises ReadingOutdated: if batches that were not read may have been removed.
        """
        batch = None if last is None else self._decoded(last)
        self._last_number = 0 if batch is None else batch.number
        if self._next_number == 0:
            self._floor = 1 if batch is None else batch.floor
        elif batch is not None and batch.floor > self._next_number:
            raise ReadingOutdated(f"batch {self._next_number} of queue {self._queue} may have been removed")

    def take_batch(self, stored: StoredBatch) -> None:
        """Take the next batch of a copy. :raises LogGap: if it is damaged, or not the next one."""
        batch = self._decoded(stored)
        expected = self._next_number or self._floor or batch.number
        if batch.number < expected:  # below the floor, stored twice, or taken by an earlier read
            if self._next_number and batch.epoch > self._epoch:
                raise LogGap(f"batch {batch.number} of queue {self._queue} comes again in epoch {batch.epoch}")
            return
        if batch.number > expected:
            raise LogGap(f"batch {expected} of queue {self._queue} is missing before batch {batch.number}")
        if batch.epoch < self._epoch or (self._claim is not None and batch.epoch >= self._claim.epoch):
            raise LogGap(f"batch {batch.number} of queue {self._queue} has epoch {batch.epoch} out of order")
        if batch.epoch != self._epoch or self._next_number == 0:  # the record of a former owner stays unfinished
            self._pieces.clear()
            self._epoch = batch.epoch
            self._lacks_beginning = batch.continues
        self._first_number = self._first_number or batch.number
        self._next_number = batch.number + 1
        self.position = stored.position
        self._note_place(batch, stored.position)
        self._take_pieces(batch)

    def _note_place(self, batch: LogBatch, position: Position) -> None:
        """Note where a batch is, and forget those below the floor, which rises while a log is followed."""
        self._batches.append(BatchPlace(batch.number, batch.first_index, position))
        if batch.floor > (self._floor or 0):
            self._floor = batch.floor
            del self._batches[: bisect_left(self._batches, batch.floor, key=lambda place: place.number)]

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
                self._take(LogRecord(index, payload, batch.epoch))
                index += 1
        self._next_index = index

    def end(self) -> LogEnd:
        """Return where the log ends.

        :raises LogGap: if the other copy has more.
        :raises ReadingOutdated: if the first batch that was taken is not the first one that is needed.
        """
        floor = self._floor or 1
        reached = max(0, (self._next_number or floor) - 1)
        if reached < self._last_number:
            raise LogGap(f"batch {self._last_number} of queue {self._queue} is missing at the end")
        if self._first_number > floor:
            raise ReadingOutdated(f"batch {floor} of queue {self._queue} was not read")
        return LogEnd(reached + 1, self._next_index, floor, tuple(self._batches))

    def _decoded(self, stored: StoredBatch) -> LogBatch:
        batch = decode_batch(stored.data)
        if batch.queue != self._queue:
            raise LogGap(f"a batch of queue {batch.queue} is in the log of queue {self._queue}")
        return batch
