"""The contract of following a log, as a check for engines. ``LOG_FOLLOWING_CHECKS`` holds the single checks."""

from collections.abc import Callable
from typing import Final

from gateway.cluster.errors import LogGap
from gateway.cluster.gate import Gate
from gateway.cluster.queue_log import (
    BEGINNING,
    UNCLAIMED,
    AppendAnswer,
    AppendOutcome,
    Claim,
    Epoch,
    Position,
    QueueId,
    QueueLogs,
    StoredBatch,
)
from gateway.testing.cluster.place import ClusterPlace

#: How many of the largest batches are more than a closed gate lets through.
_MANY: Final = 40


class SeenBatches:
    """A follower that keeps what it gets, and refuses one batch if it is told to."""

    def __init__(self, refused: bytes | None = None) -> None:
        self.batches: list[StoredBatch] = []
        self.behind: list[int] = []
        self.ended: list[str] = []
        self._refused = refused

    @property
    def data(self) -> list[bytes]:
        """The data of the batches."""
        return [batch.data for batch in self.batches]

    def take(self, batch: StoredBatch, behind: int) -> None:
        """Keep a batch. :raises LogGap: for the one to refuse."""
        if batch.data == self._refused:
            raise LogGap("refused by the follower")
        self.batches.append(batch)
        self.behind.append(behind)

    def on_ended(self, reason: str) -> None:
        """Keep the reason."""
        self.ended.append(reason)


class Appender:
    """The owner of a log, which appends batches of any bytes."""

    def __init__(self, place: ClusterPlace, queue: QueueId, expected: Epoch = UNCLAIMED) -> None:
        self._place = place
        self.logs: QueueLogs = place.logs()
        self.claim: Claim = place.run(self.logs.claim(queue, place.new_name(), expected))
        self._number = 0

    def append(self, *data: bytes) -> list[StoredBatch]:
        """Append batches, and wait until they are stored."""
        return [StoredBatch(self._append(each), each) for each in data]

    def _append(self, data: bytes) -> Position:
        answers: list[AppendAnswer] = []
        self._number += 1
        self.logs.append(self.claim, self._number, data, answers.append)
        self._place.until(lambda: answers)
        assert answers[0].outcome is AppendOutcome.STORED, f"{answers[0]}"
        return answers[0].position


def check_log_followings(new_place: Callable[[], ClusterPlace]) -> None:
    """Check that an engine keeps every promise about following. :raises AssertionError: for the first broken one."""
    for check in LOG_FOLLOWING_CHECKS:
        place = new_place()
        try:
            check(place)
        finally:
            place.close()


def _numbered(first: int, end: int) -> list[bytes]:
    return [b"batch %d" % number for number in range(first, end)]


def _what_is_there_comes_first_and_then_what_is_appended(place: ClusterPlace) -> None:
    queue, seen = place.new_queue(), SeenBatches()
    owner = Appender(place, queue)
    written = owner.append(*_numbered(0, 5))
    following = place.logs().follow(queue, seen)
    assert not seen.batches, "a batch came from inside the call"
    place.until(lambda: len(seen.batches) >= 5)
    assert seen.behind[-1] == 0, f"{seen.behind[-1]} batches after the last one"
    for number in range(5, 10):
        written += owner.append(b"batch %d" % number)
    place.until(lambda: len(seen.batches) >= 10)
    assert seen.batches == written
    following.stop()
    following.stop()
    assert not seen.ended, "a following that was stopped reported its end"


def _an_empty_log_is_followed(place: ClusterPlace) -> None:
    queue, seen = place.new_queue(), SeenBatches()
    following = place.logs().follow(queue, seen)
    written = Appender(place, queue).append(b"first")
    place.until(lambda: seen.batches)
    assert seen.batches == written
    following.stop()


def _a_following_begins_after_a_position(place: ClusterPlace) -> None:
    queue, seen = place.new_queue(), SeenBatches()
    owner = Appender(place, queue)
    written = owner.append(*_numbered(0, 6))
    following = place.logs().follow(queue, seen, written[2].position)
    place.until(lambda: len(seen.batches) >= 3)
    written += owner.append(b"later")
    place.until(lambda: len(seen.batches) >= 4)
    assert seen.batches == written[3:]
    following.stop()


def _a_following_goes_on_over_claims_and_sees_no_other_log(place: ClusterPlace) -> None:
    queue, other, seen = place.new_queue(), place.new_queue(), SeenBatches()
    first, beside = Appender(place, queue), Appender(place, other)
    following = place.logs().follow(queue, seen)
    first.append(b"one")
    beside.append(b"of another queue")
    Appender(place, queue, first.claim.epoch).append(b"two")
    place.until(lambda: len(seen.batches) >= 2)
    assert seen.data == [b"one", b"two"]
    following.stop()


def _what_was_purged_is_left_out(place: ClusterPlace) -> None:
    queue, seen = place.new_queue(), SeenBatches()
    owner = Appender(place, queue)
    written = owner.append(*_numbered(0, 6))
    owner.logs.purge(owner.claim, written[4].position)
    place.until(lambda: place.run(owner.logs.fetch(queue, written[3].position)) is None)
    following = place.logs().follow(queue, seen, written[0].position)
    place.until(lambda: len(seen.batches) >= 2)
    assert seen.batches == written[4:]
    following.stop()


def _a_refused_batch_ends_the_following(place: ClusterPlace) -> None:
    queue, logs = place.new_queue(), place.logs()
    owner = Appender(place, queue)
    written = owner.append(*_numbered(0, 5))
    seen = SeenBatches(refused=b"batch 3")
    logs.follow(queue, seen)
    place.until(lambda: seen.ended)
    assert seen.batches == written[:3], "a batch came after the follower had refused one"
    assert len(seen.ended) == 1
    again = SeenBatches()
    following = logs.follow(queue, again, written[2].position)
    place.until(lambda: len(again.batches) >= 2)
    assert again.batches == written[3:]
    following.stop()


def _a_closed_gate_holds_batches_back(place: ClusterPlace) -> None:
    queue, seen, gate, logs = place.new_queue(), SeenBatches(), Gate(), place.logs()
    owner = Appender(place, queue)
    data = bytes(owner.logs.most_batch_bytes)
    written = owner.append(*[data] * _MANY)
    gate.close()
    following = logs.follow(queue, seen, BEGINNING, gate)
    owner.append(b"end")  # takes a while, in which batches could come
    watched = SeenBatches()
    beside = place.logs().follow(queue, watched)
    place.until(lambda: len(watched.batches) > _MANY)
    assert len(seen.batches) < _MANY, "everything came through a closed gate"
    gate.open()
    place.until(lambda: len(seen.batches) > _MANY)
    assert [batch.position for batch in seen.batches[:-1]] == [batch.position for batch in written]
    following.stop()
    beside.stop()


LOG_FOLLOWING_CHECKS: Final = (
    _what_is_there_comes_first_and_then_what_is_appended,
    _an_empty_log_is_followed,
    _a_following_begins_after_a_position,
    _a_following_goes_on_over_claims_and_sees_no_other_log,
    _what_was_purged_is_left_out,
    _a_refused_batch_ends_the_following,
    _a_closed_gate_holds_batches_back,
)
