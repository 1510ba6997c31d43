"""The contract of the logs of queues, as a check for engines. ``QUEUE_LOG_CHECKS`` holds the single checks."""

from collections.abc import Callable
from typing import Final

from gateway.cluster.errors import Deposed, Outdated
from gateway.cluster.log_replay import LogEnd, LogRecord, replay
from gateway.cluster.log_writer import LogWriter
from gateway.cluster.queue_log import (
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


def check_queue_logs(new_place: Callable[[], ClusterPlace]) -> None:
    """Check that an engine keeps every promise of ``gateway.cluster.queue_log``.

    :raises AssertionError: for the first broken promise.
    """
    for check in QUEUE_LOG_CHECKS:
        place = new_place()
        try:
            check(place)
        finally:
            place.close()


class SeenProgress:
    """A listener of a writer that keeps what it gets."""

    def __init__(self) -> None:
        self.durable: list[int] = []
        self.deposed: list[str] = []

    def on_durable(self, index: int) -> None:
        """Keep a watermark."""
        self.durable.append(index)

    def on_deposed(self, reason: str) -> None:
        """Keep the end."""
        self.deposed.append(reason)

    def on_stalled(self, reason: str) -> None:
        """Do nothing: the writer tries again."""

    def on_resumed(self) -> None:
        """Do nothing."""


class OwnedLog:
    """A log as its owner has it: claimed, read and open for records."""

    def __init__(self, place: ClusterPlace, queue: QueueId, expected: Epoch = UNCLAIMED) -> None:
        self._place = place
        self.logs: QueueLogs = place.logs()
        self.claim: Claim = place.run(self.logs.claim(queue, place.new_name(), expected))
        self.records: list[LogRecord] = []
        self.end: LogEnd = place.run(replay(self.logs, self.claim, self.records.append))
        self.progress = SeenProgress()
        self.writer = LogWriter(self.logs, place.clock, self.claim, self.end, self.progress)

    def append(self, *payloads: bytes) -> int:
        """Append records and wait until they are stored; return the last index."""
        index = [self.writer.append(payload) for payload in payloads][-1]
        self.settle(index)
        return index

    def settle(self, index: int) -> None:
        """Wait until a record is stored, or the writer deposed."""
        self._place.until(lambda: self.writer.durable_index >= index or self.progress.deposed)

    @property
    def payloads(self) -> list[bytes]:
        """The payloads of the records that were read."""
        return [record.payload for record in self.records]


def _appended(place: ClusterPlace, logs: QueueLogs, claim: Claim, number: int, data: bytes) -> AppendAnswer:
    answers: list[AppendAnswer] = []
    logs.append(claim, number, data, answers.append)
    assert not answers, "an append was answered from inside the call"
    place.until(lambda: answers)
    (answer,) = answers
    return answer


def _read(place: ClusterPlace, logs: QueueLogs, claim: Claim) -> list[StoredBatch]:
    batches: list[StoredBatch] = []
    place.run(logs.read(claim, batches.append))
    return batches


def _a_queue_is_claimed_by_one_node_for_each_epoch(place: ClusterPlace) -> None:
    one, other, queue = place.logs(), place.logs(), place.new_queue()
    assert place.run(one.owner(queue)) is None, "a queue that was never claimed has an owner"
    first = place.run(one.claim(queue, "one", UNCLAIMED))
    assert first.epoch > UNCLAIMED
    for expected in (UNCLAIMED, Epoch(first.epoch + 1)):
        try:
            place.run(other.claim(queue, "other", expected))
        except Outdated:
            continue
        raise AssertionError(f"a queue of epoch {first.epoch} was claimed with epoch {expected}")
    assert place.run(other.owner(queue)) == first
    second = place.run(other.claim(queue, "other", first.epoch))
    assert second.epoch > first.epoch, "epochs do not rise"
    assert place.run(one.owner(queue)) == Claim(queue, "other", second.epoch)


def _batches_are_read_in_order_up_to_the_claim(place: ClusterPlace) -> None:
    logs, queue = place.logs(), place.new_queue()
    claim = place.run(logs.claim(queue, "one", UNCLAIMED))
    assert _read(place, logs, claim) == []
    assert place.run(logs.last(claim)) is None
    written = []
    for number in range(1, 8):
        answer = _appended(place, logs, claim, number, b"%d" % number)
        assert answer.outcome is AppendOutcome.STORED, f"{answer}"
        written.append(StoredBatch(answer.position, b"%d" % number))
    positions = [batch.position for batch in written]
    assert positions == sorted(set(positions)), f"positions do not rise: {positions}"
    other = place.logs()
    later = place.run(other.claim(queue, "other", claim.epoch))
    assert later.epoch > positions[-1], "the epoch is not above the positions before it"
    assert _read(place, other, later) == written
    assert place.run(other.last(later)) == written[-1]
    assert _appended(place, other, later, 8, b"8").outcome is AppendOutcome.STORED
    assert _read(place, other, later) == written, "what follows the claim was read"


def _a_deposed_owner_stores_nothing(place: ClusterPlace) -> None:
    one, other, queue = place.logs(), place.logs(), place.new_queue()
    first = place.run(one.claim(queue, "one", UNCLAIMED))
    stored = _appended(place, one, first, 1, b"one")
    second = place.run(other.claim(queue, "other", first.epoch))
    answer = _appended(place, one, first, 2, b"late")
    assert answer.outcome is AppendOutcome.DEPOSED, f"an append of an old epoch: {answer}"
    assert answer.reason, "a refusal without a reason"
    third = place.run(one.claim(queue, "one", second.epoch))
    assert _read(place, one, third) == [StoredBatch(stored.position, b"one")]


def _a_repeated_batch_is_stored_once(place: ClusterPlace) -> None:
    logs, queue = place.logs(), place.new_queue()
    claim = place.run(logs.claim(queue, "one", UNCLAIMED))
    first = _appended(place, logs, claim, 1, b"one")
    assert _appended(place, logs, claim, 1, b"one") == first
    later = place.run(logs.claim(queue, "one", claim.epoch))
    assert _read(place, logs, later) == [StoredBatch(first.position, b"one")]


def _the_largest_batch_is_stored(place: ClusterPlace) -> None:
    logs, queue = place.logs(), place.new_queue()
    claim = place.run(logs.claim(queue, "one", UNCLAIMED))
    data = bytes(range(256)) * (logs.most_batch_bytes // 256)
    answer = _appended(place, logs, claim, 1, data)
    assert answer.outcome is AppendOutcome.STORED, f"{answer}"
    assert place.run(logs.fetch(queue, answer.position)) == data


def _logs_do_not_mix(place: ClusterPlace) -> None:
    queues = [place.new_queue() for _ in range(3)]
    logs = [OwnedLog(place, queue) for queue in queues]
    for turn in range(3):
        for log, queue in zip(logs, queues, strict=True):
            log.append(b"%d of %d" % (turn, queue))
    for log, queue in zip(logs, queues, strict=True):
        later = OwnedLog(place, queue, log.claim.epoch)
        assert later.payloads == [b"%d of %d" % (turn, queue) for turn in range(3)], f"{later.payloads}"


def _a_superseded_claim_is_not_read(place: ClusterPlace) -> None:
    logs, queue = place.logs(), place.new_queue()
    first = place.run(logs.claim(queue, "one", UNCLAIMED))
    place.run(place.logs().claim(queue, "other", first.epoch))

    def is_refused() -> bool:
        try:
            place.run(replay(logs, first, lambda record: None))
        except Deposed:
            return True
        return False

    place.until(is_refused)  # a copy that is behind does not have the later claim yet


def _a_reader_ends_its_read(place: ClusterPlace) -> None:
    log = OwnedLog(place, place.new_queue())
    for payload in (b"one", b"two"):
        log.append(payload)
    claim = place.run(log.logs.claim(log.claim.queue, place.new_name(), log.claim.epoch))
    taken: list[StoredBatch] = []

    def take(batch: StoredBatch) -> None:
        taken.append(batch)
        raise Deposed("the reader leads no more")

    try:
        place.run(log.logs.read(claim, take))
    except Deposed:
        assert len(taken) == 1, "a batch came after the reader had refused one"
    else:
        raise AssertionError("a reader that was deposed read to the end")


def _records_come_back_in_order_over_several_epochs(place: ClusterPlace) -> None:
    queue, epoch = place.new_queue(), UNCLAIMED
    written: list[bytes] = []
    for turn in range(3):
        log = OwnedLog(place, queue, epoch)
        assert log.payloads == written, f"epoch {turn} reads {log.payloads}"
        assert [record.index for record in log.records] == list(range(1, len(written) + 1))
        payloads = [b"", b"%d" % turn, b"x" * 70_000]
        assert log.append(*payloads) == len(written) + 3
        assert log.progress.durable == sorted(set(log.progress.durable)), "watermarks do not rise"
        written += payloads
        epoch = log.claim.epoch


def _a_record_larger_than_a_batch_comes_back_whole(place: ClusterPlace) -> None:
    queue = place.new_queue()
    log = OwnedLog(place, queue)
    most = log.logs.most_batch_bytes
    payloads = [b"small", bytes(range(256)) * (most // 100), b"y" * most, b"z" * (most * 2), b"end"]
    log.append(*payloads)
    assert OwnedLog(place, queue, log.claim.epoch).payloads == payloads


def _a_deposed_writer_stops(place: ClusterPlace) -> None:
    queue = place.new_queue()
    log = OwnedLog(place, queue)
    log.append(b"one")
    later = OwnedLog(place, queue, log.claim.epoch)
    index = log.writer.append(b"late")
    log.settle(index)
    assert len(log.progress.deposed) == 1, f"the writer was deposed {len(log.progress.deposed)} times"
    assert log.progress.durable == [1], f"the watermarks are {log.progress.durable}"
    assert log.writer.is_closed
    later.append(b"two")
    assert OwnedLog(place, queue, later.claim.epoch).payloads == [b"one", b"two"]


def _covered_records_are_removed(place: ClusterPlace) -> None:
    queue = place.new_queue()
    log = OwnedLog(place, queue)
    for at in range(20):
        log.append(b"%d" % at)
    positions = [batch.position for batch in _batches_of(place, log)]
    index = log.writer.append(b"covers", keep_from=15)
    log.settle(index)
    place.until(lambda: place.run(log.logs.fetch(queue, positions[5])) is None)
    later = OwnedLog(place, queue, log.claim.epoch)
    indexes = [record.index for record in later.records]
    assert indexes[0] > 5, f"records from {indexes[0]} on were kept"
    assert indexes == list(range(indexes[0], 22)), f"read {indexes}"
    assert indexes[0] <= 15, f"record 15 was removed: read {indexes}"
    assert later.payloads[-2:] == [b"19", b"covers"]
    assert later.append(b"next") == 22


def _batches_of(place: ClusterPlace, log: OwnedLog) -> list[StoredBatch]:
    """Return the stored batches, by what the log's owner knows of them."""
    found: list[StoredBatch] = []
    epoch = log.claim.epoch
    position = Position(epoch)
    while len(found) < log.writer.durable_index:
        position = Position(position + 1)
        data = place.run(log.logs.fetch(log.claim.queue, position))
        if data is not None:
            found.append(StoredBatch(position, data))
        assert position < epoch + 1000, "the batches of a log cannot be fetched"
    return found


def _what_is_not_there_is_not_fetched(place: ClusterPlace) -> None:
    queue, other = place.new_queue(), place.new_queue()
    log, beside = OwnedLog(place, queue), OwnedLog(place, other)
    log.append(b"one")
    (batch,) = _batches_of(place, log)
    assert place.run(beside.logs.fetch(other, batch.position)) is None, "a batch of another queue was fetched"
    assert place.run(log.logs.fetch(queue, Position(batch.position + 1_000_000))) is None


QUEUE_LOG_CHECKS: Final = (
    _a_queue_is_claimed_by_one_node_for_each_epoch,
    _batches_are_read_in_order_up_to_the_claim,
    _a_deposed_owner_stores_nothing,
    _a_repeated_batch_is_stored_once,
    _the_largest_batch_is_stored,
    _logs_do_not_mix,
    _a_superseded_claim_is_not_read,
    _a_reader_ends_its_read,
    _records_come_back_in_order_over_several_epochs,
    _a_record_larger_than_a_batch_comes_back_whole,
    _a_deposed_writer_stops,
    _covered_records_are_removed,
    _what_is_not_there_is_not_fetched,
)
