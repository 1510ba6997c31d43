"""Appending to a log as its owner: records are staged, sent in batches, and reported by a watermark."""

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from gateway.cluster.append_times import AppendTimes
from gateway.cluster.batches import HEAD_BYTES, PIECE_BYTES, encode_pieces
from gateway.cluster.log_replay import BatchPlace, LogEnd
from gateway.cluster.queue_log import AppendAnswer, AppendOutcome, Claim, QueueLogs
from gateway.cluster.slow_appends import SlowAppends
from gateway.kernel.clock import Clock

#: The pauses before a batch is sent again, in seconds: while an earlier attempt is in flight, and without an answer.
_IN_FLIGHT_S: Final = 0.02
_FIRST_RETRY_S: Final = 0.1
_LONGEST_RETRY_S: Final = 1.0


class LogListener(Protocol):
    """Gets reports about a log. The calls are never made from inside ``append``."""

    def on_durable(self, index: int) -> None:
        """Note that all records up to ``index`` are stored by a majority; indexes only rise."""
        ...

    def on_deposed(self, reason: str) -> None:
        """Note, once, that another node owns the queue: nothing above the last watermark may be reported as stored."""
        ...

    def on_stalled(self, reason: str) -> None:
        """Note that the engine does not answer; the writer tries again by itself."""
        ...

    def on_resumed(self) -> None:
        """Note that the engine answers again after ``on_stalled``."""
        ...


class LogWriter:
    """Appends to a log under one claim. Owns the records that are not stored yet.

    One batch is in flight at a time; what is staged meanwhile goes with the next one. A batch without an answer is sent
    again as it is, with its number, until there is an answer. When the queue has another owner, the writer stops.
    """

    def __init__(self, logs: QueueLogs, clock: Clock, claim: Claim, end: LogEnd, listener: LogListener) -> None:
        self.claim = claim
        self.times = AppendTimes()
        self._slow = SlowAppends()
        self._logs = logs
        self._clock = clock
        self._listener = listener
        self._next_index = end.next_index
        self._durable_index = end.next_index - 1
        self._staged: deque[StagedPiece] = deque()
        self._piece_bytes = max(1, logs.most_batch_bytes - HEAD_BYTES - PIECE_BYTES)
        self._floor = end.floor
        #: The stored batches from the floor on; and of the staged covering records, the index and what they keep.
        self._batches = list(end.batches)
        self._covering: deque[tuple[int, int]] = deque()
        #: The numbers of the batches that begin with certain records, by the indexes of these.
        self._begun: dict[int, int] = {}
        self._next_number = end.next_number
        self._in_flight: SentBatch | None = None
        self._is_scheduled = False
        self._is_stalled = False
        self._is_closed = False
        self._attempts = 0

    @property
    def durable_index(self) -> int:
        """All records up to this index are stored."""
        return self._durable_index

    @property
    def leader_moves(self) -> int:
        """The number of requests for another leader, each because all appends were slow."""
        return self._slow.moves

    @property
    def is_closed(self) -> bool:
        """Whether the writer has stopped."""
        return self._is_closed

    def append(
        self, payload: bytes, *, keep_from: int | None = None, begins_batch: bool = False, at_once: bool = False
    ) -> int:
        """Stage a record and return its index. It is sent soon, with what is staged meanwhile, or ``at_once``.

        With ``keep_from`` the record covers all before that index: once it is stored, they may be removed. Batches are
        removed as a whole, so some may stay; none does if the record at that index ``begins_batch``.

        :raises RuntimeError: if the writer has stopped.
        """
        if self._is_closed:
            raise RuntimeError(f"the log of queue {self.claim.queue} is closed")
        index = self._next_index
        if keep_from is not None and keep_from > index:
            raise ValueError(f"record {index} cannot cover record {keep_from - 1}, which does not exist yet")
        self._next_index += 1
        size = self._piece_bytes
        for start in range(0, max(1, len(payload)), size):
            part = payload if len(payload) <= size else payload[start : start + size]
            self._staged.append(StagedPiece(index, part, start + size < len(payload), start > 0, begins_batch))
        if keep_from is not None:
            self._covering.append((index, keep_from))
        if at_once and self._in_flight is None and not self._is_scheduled:
            self._send()
        else:
            self._send_soon(0)
        return index

    def close(self) -> None:
        """Stop: make no more calls, and send nothing more. What is in flight may still be stored."""
        self._is_closed = True
        self._staged.clear()
        self._in_flight = None

    def _batch_of(self, index: int) -> int:
        """Return the number of a batch at or before the beginning of a record; called once for each."""
        if index in self._begun:
            return self._begun.pop(index)
        at = bisect_left(self._batches, index, key=lambda place: place.first_index)
        return self._batches[at - 1].number if at else self._floor

    def _send_soon(self, delay_s: float) -> None:
        if not self._is_scheduled and (self._in_flight is None or delay_s):
            self._is_scheduled = True
            self._clock.call_later(delay_s, self._send)

    def _send(self) -> None:
        """Send the batch in flight again, or the next one."""
        self._is_scheduled = False
        if self._is_closed:
            return
        if self._in_flight is None:
            if not self._staged:
                return
            self._in_flight = self._next_batch()
            self._in_flight.sent_s = self._clock.monotonic_s()
        batch = self._in_flight
        self._logs.append(self.claim, batch.number, batch.data, self._answer_to(batch))

    def _next_batch(self) -> "SentBatch":
        pieces: list[StagedPiece] = []
        room = self._logs.most_batch_bytes - HEAD_BYTES
        while self._staged and (not pieces or self._staged[0].fits(room)):
            piece = self._staged.popleft()
            room -= len(piece.data) + PIECE_BYTES
            pieces.append(piece)
        number, self._next_number = self._next_number, self._next_number + 1
        first, last = pieces[0], pieces[-1]
        if first.begins_batch and not first.continues:
            self._begun[first.index] = number
        last_index = last.index - 1 if last.goes_on else last.index
        # Not earlier: until the covering record is complete, a replay needs what it covers.
        while self._covering and self._covering[0][0] <= last_index:
            self._floor = max(self._floor, self._batch_of(self._covering.popleft()[1]))
        content = [(each.data, each.goes_on) for each in pieces]
        queue, epoch = self.claim.queue, self.claim.epoch
        data = encode_pieces(queue, epoch, number, first.index, self._floor, content, first.continues)
        return SentBatch(number, first.index, last_index, self._floor, data)

    def _answer_to(self, batch: "SentBatch") -> Callable[[AppendAnswer], None]:
        return lambda answer: self._answered(batch, answer)

    def _answered(self, batch: "SentBatch", answer: AppendAnswer) -> None:
        if self._in_flight is not batch:
            return
        if answer.outcome is AppendOutcome.STORED:
            self._stored(batch, answer)
        elif answer.outcome is AppendOutcome.DEPOSED:
            self.close()
            self._listener.on_deposed(answer.reason)
        elif answer.outcome is AppendOutcome.IN_FLIGHT:
            self._send_soon(_IN_FLIGHT_S)
        else:
            self._attempts += 1
            self._send_soon(min(_LONGEST_RETRY_S, _FIRST_RETRY_S * 2 ** min(self._attempts - 1, 10)))
            if not self._is_stalled:
                self._is_stalled = True
                self._listener.on_stalled(answer.reason)

    def _stored(self, batch: "SentBatch", answer: AppendAnswer) -> None:
        self._in_flight = None
        self._attempts = 0
        now_s = self._clock.monotonic_s()
        self.times.note(now_s, now_s - batch.sent_s)
        if self._slow.note(now_s, now_s - batch.sent_s):
            self._logs.move_leader(self.claim)
        self._batches.append(BatchPlace(batch.number, batch.first_index, answer.position))
        if self._staged:  # else the next step is sent in its own turn
            self._send_soon(0)
        if self._is_stalled:
            self._is_stalled = False
            self._listener.on_resumed()
        if batch.last_index > self._durable_index:
            self._durable_index = batch.last_index
            self._listener.on_durable(batch.last_index)
        at = bisect_left(self._batches, batch.floor, key=lambda place: place.number)
        if at:  # what the stored records cover
            del self._batches[:at]
            self._logs.purge(self.claim, self._batches[0].position)


class StagedPiece:
    """A piece of a record that waits to be sent."""

    __slots__ = ("begins_batch", "continues", "data", "goes_on", "index")

    def __init__(self, index: int, data: bytes, goes_on: bool, continues: bool, begins_batch: bool) -> None:
        self.index = index
        self.data = data
        self.goes_on = goes_on
        self.continues = continues
        self.begins_batch = begins_batch

    def fits(self, room: int) -> bool:
        """Whether it may be in a batch after others, with so many bytes left."""
        return not self.begins_batch and len(self.data) + PIECE_BYTES <= room


class SentBatch:
    """The batch in flight. ``last_index`` is that of its last complete record, ``sent_s`` when it was sent first."""

    __slots__ = ("data", "first_index", "floor", "last_index", "number", "sent_s")

    def __init__(self, number: int, first_index: int, last_index: int, floor: int, data: bytes) -> None:
        self.number = number
        self.first_index = first_index
        self.last_index = last_index
        self.floor = floor
        self.data = data
        self.sent_s = 0.0
