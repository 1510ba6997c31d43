"""Replays: a gap or a flipped bit in one copy is read from another one, and never passed over."""

from collections.abc import Callable

import pytest

from gateway.cluster.batches import LogBatch, RecordPiece, decode_batch, encode_batch
from gateway.cluster.errors import LogDamaged, LogGap
from gateway.cluster.log_replay import LogRecord, replay
from gateway.cluster.queue_log import Claim, Epoch, QueueId, StoredBatch
from gateway.testing.clock import FakeClock
from tests.cluster.scripted_logs import ScriptedLogs, run
from tests.cluster.test_log_writer import Owner

Copy = Callable[[list[StoredBatch]], list[StoredBatch]]

PAYLOADS = [b"record %d" % at for at in range(8)]


@pytest.fixture
def logs() -> ScriptedLogs:
    """Return logs in which queue 1 has eight batches of one record."""
    clock = FakeClock()
    found = ScriptedLogs(clock)
    owner = Owner(found, clock)
    for payload in PAYLOADS:
        owner.writer.append(payload)
        clock.advance(1)
    return found


def claimed(logs: ScriptedLogs) -> Claim:
    owner = run(logs.owner(QueueId(1)))
    assert owner is not None
    return run(logs.claim(QueueId(1), "later", owner.epoch))


def replayed(logs: ScriptedLogs) -> list[LogRecord]:
    records: list[LogRecord] = []
    run(replay(logs, claimed(logs), records.append))
    return records


def without(at: int) -> Copy:
    """Return a copy that lost a batch."""
    return lambda batches: [*batches[:at], *batches[at + 1 :]]


def flipped(at: int) -> Copy:
    """Return a copy in which a bit of a batch is flipped."""

    def copy(batches: list[StoredBatch]) -> list[StoredBatch]:
        data = bytearray(batches[at].data)
        data[-1] ^= 1
        return [*batches[:at], StoredBatch(batches[at].position, bytes(data)), *batches[at + 1 :]]

    return copy


@pytest.mark.parametrize("at", [0, 3, 7], ids=["the first", "one in the middle", "the last"])
@pytest.mark.parametrize("damage", [without, flipped])
def test_damage_in_one_copy_is_read_from_another(logs: ScriptedLogs, damage: Callable[[int], Copy], at: int) -> None:
    logs.copies = [damage(at)]
    records = replayed(logs)
    assert [record.payload for record in records] == PAYLOADS
    assert [record.index for record in records] == list(range(1, 9))
    assert logs.moves == 1


def test_damage_in_every_copy_is_an_error_and_nothing_after_it_is_passed_on(logs: ScriptedLogs) -> None:
    logs.copies = [without(3)] * 10
    records: list[LogRecord] = []
    with pytest.raises(LogDamaged, match="batch 4 of queue 1 is missing before batch 5"):
        run(replay(logs, claimed(logs), records.append))
    assert [record.payload for record in records] == PAYLOADS[:3]


def test_several_copies_with_different_damage_make_a_whole(logs: ScriptedLogs) -> None:
    logs.copies = [without(2), without(5), flipped(7)]
    assert [record.payload for record in replayed(logs)] == PAYLOADS


def test_a_damaged_end_in_the_other_copy_moves_the_leader(logs: ScriptedLogs) -> None:
    logs.lasts = [lambda last: StoredBatch(last.position, last.data[:-1]) if last else None]
    assert [record.payload for record in replayed(logs)] == PAYLOADS
    assert logs.moves == 1


def test_a_leader_that_lost_the_end_is_no_reason_to_lose_it(logs: ScriptedLogs) -> None:
    logs.lasts = [lambda last: None]
    assert [record.payload for record in replayed(logs)] == PAYLOADS


def test_a_batch_that_is_stored_twice_is_read_once(logs: ScriptedLogs) -> None:
    logs.copies = [lambda batches: [*batches[:4], batches[3], *batches[4:]]]
    assert [record.payload for record in replayed(logs)] == PAYLOADS
    assert logs.moves == 0


def test_a_batch_of_another_queue_is_damage(logs: ScriptedLogs) -> None:
    foreign = encode_batch(LogBatch(QueueId(2), Epoch(1), 4, 4, 1, [RecordPiece(b"foreign")]))
    logs.copies = [lambda batches: [*batches[:3], StoredBatch(batches[3].position, foreign), *batches[4:]]]
    assert [record.payload for record in replayed(logs)] == PAYLOADS
    assert logs.moves == 1


def test_every_flipped_bit_of_a_batch_is_found() -> None:
    data = encode_batch(
        LogBatch(QueueId(7), Epoch(9), 3, 12, 2, [RecordPiece(b"hello"), RecordPiece(b"", True)], continues=True)
    )
    assert encode_batch(decode_batch(data)) == data
    for bit in range(len(data) * 8):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(LogGap):
            decode_batch(bytes(damaged))
    for size in range(len(data)):
        with pytest.raises(LogGap):
            decode_batch(data[:size])
