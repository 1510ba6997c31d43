"""A standby: its copy grows with the log, is begun anew when that is right, and is bounded in what waits."""

from collections.abc import Callable

import pytest

from gateway.cluster.batches import LogBatch, RecordPiece, encode_batch
from gateway.cluster.errors import ReadingOutdated
from gateway.cluster.log_replay import LogRecord
from gateway.cluster.queue_log import UNCLAIMED, Claim, Epoch
from gateway.cluster.replication import copy_writer
from gateway.cluster.replication.copy_writer import CopyWriter
from gateway.cluster.replication.log_copy import LogCopy
from gateway.cluster.replication.log_records import CHECKPOINT_BEGIN, CHECKPOINT_END, CHECKPOINT_PIECE, STEP
from gateway.cluster.replication.replaying import RecordApplier
from gateway.cluster.replication.standby import Standby
from gateway.cluster.replication.step_codec import StepEncoder
from gateway.kernel.errors import GatewayError, StorageError
from gateway.kernel.journal.changes import Appended, Change, Dequeued, Discarded, Enqueued, Put, Stored, Truncated
from gateway.testing.clock import FakeClock
from gateway.testing.store_session import message_with, queue_record, vhost_record
from gateway.testing.store_streams import stream_message
from gateway_memory import MemoryStore
from gateway_memory.cluster import MemoryQueueLogs
from tests.cluster.replicated_places import LOG
from tests.cluster.scripted_logs import run


def step(*changes: Change) -> bytes:
    return STEP + StepEncoder().encode(changes)


class Followed:
    """A log in memory with an owner that appends records, and a standby that follows it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.logs = MemoryQueueLogs(self.clock)
        self.claim: Claim = run(self.logs.claim(LOG, "leader", Epoch(UNCLAIMED)))
        self.number = 0
        self.stores: list[MemoryStore] = []
        self.caught_up: list[int] = []
        self.interruptions: list[str] = []
        self.refusal: GatewayError | None = None
        self.standby = Standby(self.logs, LOG, self.clock, self.new_copy, self)

    def new_copy(self, on_failure: Callable[[str], None]) -> LogCopy:
        if self.refusal is not None:
            raise self.refusal
        self.stores.append(MemoryStore(defer=lambda call: self.clock.call_later(0.001, call)))
        return LogCopy(LOG, self.stores[-1], self.clock, on_failure)

    def on_caught_up(self, records: int) -> None:
        self.caught_up.append(records)

    def on_interrupted(self, reason: str) -> None:
        self.interruptions.append(reason)

    def append(self, *payloads: bytes, skipped: int = 0, floor: int = 1) -> None:
        """Append each payload in a batch of its own; without ``skipped`` numbers before them."""
        self.number += skipped
        for payload in payloads:
            self.number += 1
            batch = LogBatch(LOG, self.claim.epoch, self.number, self.number, floor, [RecordPiece(payload)])
            self.logs.append(self.claim, self.number, encode_batch(batch), lambda answer: None)

    def vhosts(self) -> list[str]:
        """Return the virtual hosts that the last copy has written."""
        return [change.entity.name for change in self.stores[-1].recover() if isinstance(change, Put)]


@pytest.fixture
def followed() -> Followed:
    return Followed()


def put(name: str) -> bytes:
    return step(Put(vhost_record(name)))


def test_what_is_appended_is_in_the_copy_soon_and_nothing_is_called_while_the_log_is_idle(followed: Followed) -> None:
    followed.append(put("a"))
    followed.standby.start()
    followed.clock.advance(1)
    assert followed.vhosts() == ["a"]
    followed.append(put("b"))
    followed.clock.advance(1)
    assert followed.vhosts() == ["a", "b"]
    assert followed.caught_up == [1]
    assert not [timer for *_, timer in followed.clock._due if timer._call is not None]


def test_the_lag_is_that_of_the_batches_that_are_not_applied(followed: Followed) -> None:
    followed.standby.start()
    assert followed.standby.lag is None
    followed.append(put("a"))
    followed.clock.advance(1)
    lag = followed.standby.lag
    assert lag is not None
    assert (lag.batches, lag.seconds) == (0, 0)
    followed.stores[-1].stall("no space")
    followed.append(*(put("x" * 900_000 + str(number)) for number in range(12)))
    followed.clock.advance(3)
    lag = followed.standby.lag
    assert lag is not None
    assert lag.batches > 0
    assert 2.9 <= lag.seconds <= 3.1
    followed.stores[-1].resume()
    followed.clock.advance(1)
    lag = followed.standby.lag
    assert lag is not None
    assert (lag.batches, lag.seconds) == (0, 0)


def test_a_batch_that_is_missing_is_asked_for_again_and_then_the_copy_is_begun_anew(followed: Followed) -> None:
    followed.append(put("a"))
    followed.standby.start()
    followed.clock.advance(0.1)
    followed.append(put("c"), skipped=1)
    followed.clock.advance(0.1)
    assert len(followed.interruptions) == 1
    assert "batch 2 of queue 1 is missing" in followed.interruptions[0]
    followed.clock.advance(5)
    assert any(reason.endswith("the copy is begun anew") for reason in followed.interruptions)
    assert 2 <= len(followed.stores) <= 3, "the pause does not grow"


def test_a_copy_that_lacks_what_was_purged_is_refused_at_the_claim(followed: Followed) -> None:
    followed.append(put("a"))
    followed.standby.start()
    followed.clock.advance(0.1)
    copy = followed.standby.hand_over()
    assert copy is not None
    followed.append(put("b"), put("c"), floor=3)
    claim = run(followed.logs.claim(LOG, "next", followed.claim.epoch))
    with pytest.raises(ReadingOutdated, match="batch 2 of queue 1 may have been removed"):
        run(copy.read_rest(followed.logs, claim))


def test_a_copy_of_a_log_that_went_back_is_refused_at_the_claim(followed: Followed) -> None:
    followed.append(put("a"), put("b"))
    followed.standby.start()
    followed.clock.advance(0.1)
    copy = followed.standby.hand_over()
    assert copy is not None
    with pytest.raises(ReadingOutdated, match="was read up to position 3, and is claimed at 2"):
        run(copy.read_rest(followed.logs, Claim(LOG, "next", Epoch(2))))


def test_a_store_that_fails_is_replaced_after_a_while(followed: Followed) -> None:
    followed.append(put("a"))
    followed.standby.start()
    followed.clock.advance(1)
    followed.refusal = StorageError("the directory cannot be used")
    followed.stores[-1].fail("the disk is gone")
    followed.clock.advance(0.1)
    assert "the disk is gone" in followed.interruptions[-1]
    assert followed.standby.copy is None
    followed.clock.advance(2)
    assert "the directory cannot be used" in followed.interruptions[-1]
    followed.refusal = None
    followed.clock.advance(11)
    assert followed.vhosts() == ["a"]


def test_a_full_disk_is_waited_for_until_the_node_is_elected(followed: Followed) -> None:
    followed.standby.start()
    followed.stores[-1].stall("no space")
    followed.append(put("a"))
    followed.clock.advance(60)
    assert not followed.interruptions
    copy = followed.standby.hand_over()
    assert copy is not None
    assert copy.writer.failure is None
    copy.writer.hurry()
    assert str(copy.writer.failure) == "no space"


def test_after_a_stop_nothing_is_called_any_more(followed: Followed) -> None:
    followed.standby.start()
    followed.append(put("a"))
    followed.clock.advance(1)
    followed.standby.stop()
    followed.append(put("b"))
    followed.clock.advance(60)
    assert not followed.interruptions
    assert len(followed.stores) == 1


def test_what_comes_and_goes_within_a_moment_is_not_written() -> None:
    clock, written = FakeClock(), list[int]()
    store = MemoryStore()
    writer = CopyWriter(store, clock, written.append)
    kept = store.append
    store.append = lambda changes: (written.append(len(changes)), kept(changes))[1]  # type: ignore[method-assign]
    writer.take(LogRecord(1, step(Put(queue_record(1)))))
    for message_id in range(1, 100):
        stored = Stored(message_with(message_id, b"body"))
        writer.take(LogRecord(2 * message_id, step(stored, Enqueued(1, message_id, message_id, 4))))
        writer.take(LogRecord(2 * message_id + 1, step(Dequeued(message_id), Discarded(message_id))))
    clock.advance(1)
    assert written == [1]


def test_the_gate_is_closed_while_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    record = put("a" * 300)
    monkeypatch.setattr(copy_writer, "_MOST_WAITING", 3 * len(record))
    clock = FakeClock()
    writer = CopyWriter(MemoryStore(), clock, lambda reason: None)
    for index in range(1, 3):
        writer.take(LogRecord(index, record))
    assert writer.gate.is_open
    writer.take(LogRecord(3, record))
    assert not writer.gate.is_open
    clock.advance(0)
    assert writer.gate.is_open


def test_a_record_that_cannot_be_read_fails_the_copy() -> None:
    clock, reasons = FakeClock(), list[str]()
    writer = CopyWriter(MemoryStore(), clock, reasons.append)
    writer.take(LogRecord(1, b"?"))
    clock.advance(0)
    assert reasons == ["record 1 of the log is of an unknown kind b'?'"]
    assert writer.gate.is_open, "a reader that waits would not notice"


def test_the_steps_before_the_checkpoint_with_which_a_log_begins_are_left_out() -> None:
    applied: list[Change] = []
    applier = RecordApplier(applied.extend)
    whole = [stream_message(1, 0), stream_message(1, 1)]
    piece = CHECKPOINT_PIECE + StepEncoder().encode([Truncated(1, 0), *whole])
    for index, payload in enumerate((step(whole[1]), CHECKPOINT_BEGIN, piece, CHECKPOINT_END), 7):
        assert not applier.is_complete
        applier.take(LogRecord(index, payload))
    assert applier.is_complete
    assert [change.offset for change in applied if isinstance(change, Appended)] == [0, 1]
    applied.clear()
    for index, payload in enumerate((CHECKPOINT_BEGIN, piece, step(stream_message(1, 2)), CHECKPOINT_END), 11):
        applier.take(LogRecord(index, payload))
    assert [change.offset for change in applied if isinstance(change, Appended)] == [2], (
        "a checkpoint was applied again"
    )
    assert applier.growth.checkpoint_bytes == len(piece)
