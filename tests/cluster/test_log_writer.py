"""The writer of a log: one batch in flight, the same batch again without an answer, and an end when it is deposed."""

import pytest

from gateway.cluster.batches import decode_batch
from gateway.cluster.log_replay import LogEnd, LogRecord, replay
from gateway.cluster.log_writer import LogWriter
from gateway.cluster.queue_log import UNCLAIMED, AppendAnswer, AppendOutcome, Epoch, QueueId
from gateway.testing.clock import FakeClock
from tests.cluster.scripted_logs import ScriptedLogs, run

LOST = AppendAnswer(AppendOutcome.UNANSWERED, reason="no answer within 3 s")
BUSY = AppendAnswer(AppendOutcome.IN_FLIGHT, reason="in flight")
DEPOSED = AppendAnswer(AppendOutcome.DEPOSED, reason="wrong last sequence")


class Owner:
    """A claimed log with its writer, and what the writer reported."""

    def __init__(self, logs: ScriptedLogs, clock: FakeClock, expected: Epoch = UNCLAIMED) -> None:
        self.claim = run(logs.claim(QueueId(1), "one", expected))
        self.read: list[LogRecord] = []
        self.end: LogEnd = run(replay(logs, self.claim, self.read.append))
        self.reports: list[object] = []
        self.writer = LogWriter(logs, clock, self.claim, self.end, self)

    def on_durable(self, index: int) -> None:
        self.reports.append(index)

    def on_deposed(self, reason: str) -> None:
        self.reports.append(f"deposed: {reason}")

    def on_stalled(self, reason: str) -> None:
        self.reports.append(f"stalled: {reason}")

    def on_resumed(self) -> None:
        self.reports.append("resumed")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def logs(clock: FakeClock) -> ScriptedLogs:
    return ScriptedLogs(clock)


def test_the_records_of_a_turn_are_one_batch_and_the_next_waits_for_its_answer(
    clock: FakeClock, logs: ScriptedLogs
) -> None:
    owner = Owner(logs, clock)
    assert [owner.writer.append(b"a"), owner.writer.append(b"b")] == [1, 2]
    assert logs.sent == []
    logs.answers = [BUSY]
    clock.advance(0)
    owner.writer.append(b"c")
    clock.advance(0.01)
    assert [number for number, _ in logs.sent] == [1], "a second batch was sent while one was in flight"
    clock.advance(1)
    assert [number for number, _ in logs.sent] == [1, 1, 2]
    assert logs.sent[0] == logs.sent[1]
    assert owner.reports == [2, 3]


def test_a_record_is_sent_at_once_unless_something_is_in_flight_or_staged(clock: FakeClock, logs: ScriptedLogs) -> None:
    owner = Owner(logs, clock)
    owner.writer.append(b"a", at_once=True)
    assert [number for number, _ in logs.sent] == [1]
    owner.writer.append(b"b", at_once=True)
    assert [number for number, _ in logs.sent] == [1], "a second batch was sent while one was in flight"
    clock.advance(1)
    assert [decode_batch(data).pieces[0].data for _, data in logs.sent] == [b"a", b"b"]
    assert owner.reports == [1, 2]
    owner.writer.append(b"c")
    owner.writer.append(b"d", at_once=True)
    assert [number for number, _ in logs.sent] == [1, 2], "what was staged first was overtaken"
    clock.advance(1)
    assert [number for number, _ in logs.sent] == [1, 2, 3]
    assert owner.reports == [1, 2, 4]


def test_without_an_answer_the_same_batch_is_sent_again(clock: FakeClock, logs: ScriptedLogs) -> None:
    owner = Owner(logs, clock)
    logs.answers, logs.stores = [LOST, LOST, LOST], True
    owner.writer.append(b"a")
    clock.advance(0.05)
    owner.writer.append(b"b")
    clock.advance(5)
    assert len(set(logs.sent[:4])) == 1, "another batch was sent than the one without an answer"
    assert owner.reports == ["stalled: no answer within 3 s", "resumed", 1, 2]
    later = Owner(logs, clock, owner.claim.epoch)
    assert [record.payload for record in later.read] == [b"a", b"b"]


def test_a_deposed_writer_reports_it_once_and_sends_nothing_more(clock: FakeClock, logs: ScriptedLogs) -> None:
    owner = Owner(logs, clock)
    logs.answers = [DEPOSED]
    owner.writer.append(b"a")
    clock.advance(0)
    owner_reports = list(owner.reports)
    clock.advance(10)
    assert owner_reports == owner.reports == ["deposed: wrong last sequence"]
    assert owner.writer.is_closed
    with pytest.raises(RuntimeError, match="closed"):
        owner.writer.append(b"b")
    assert len(logs.sent) == 1


def test_a_closed_writer_reports_nothing(clock: FakeClock, logs: ScriptedLogs) -> None:
    owner = Owner(logs, clock)
    owner.writer.append(b"a")
    owner.writer.close()
    clock.advance(10)
    assert (owner.reports, logs.sent) == ([], [])


def test_batches_are_full_and_no_larger(clock: FakeClock) -> None:
    logs = ScriptedLogs(clock, most_batch_bytes=200)
    owner = Owner(logs, clock)
    payloads = [bytes([at]) * (at * 7) for at in range(40)]
    for payload in payloads:
        owner.writer.append(payload)
    clock.advance(1)
    assert max(len(data) for _, data in logs.sent) <= 200
    assert owner.reports[-1] == 40
    assert owner.reports == sorted(set(owner.reports), key=int)  # type: ignore[call-overload]
    later = Owner(logs, clock, owner.claim.epoch)
    assert [record.payload for record in later.read] == payloads


def test_the_pieces_of_a_former_owner_are_no_record(clock: FakeClock) -> None:
    logs = ScriptedLogs(clock, most_batch_bytes=200)
    owner = Owner(logs, clock)
    owner.writer.append(b"whole")
    logs.answers = [None, None, DEPOSED]
    owner.writer.append(b"x" * 1000)
    clock.advance(1)
    assert owner.reports == [1, "deposed: wrong last sequence"]
    second = Owner(logs, clock, owner.claim.epoch)
    assert [record.payload for record in second.read] == [b"whole"]
    assert second.writer.append(b"next") == 2
    clock.advance(1)
    third = Owner(logs, clock, second.claim.epoch)
    assert [(record.index, record.payload) for record in third.read] == [(1, b"whole"), (2, b"next")]


def test_nothing_is_covered_before_the_covering_record_is_whole(clock: FakeClock) -> None:
    logs = ScriptedLogs(clock, most_batch_bytes=200)
    owner = Owner(logs, clock)
    for at in range(5):
        owner.writer.append(b"%d" % at)
        clock.advance(1)
    logs.answers = [None, None, DEPOSED]
    owner.writer.append(b"covers" * 100, keep_from=6)
    clock.advance(1)
    later = Owner(logs, clock, owner.claim.epoch)
    assert [record.payload for record in later.read] == [b"0", b"1", b"2", b"3", b"4"], "what was not covered is lost"


@pytest.mark.parametrize("size", [100, 150], ids=["a batch for each record", "a record in several batches"])
def test_what_is_covered_is_removed_and_its_batches_may_be_missing(clock: FakeClock, size: int) -> None:
    logs = ScriptedLogs(clock, most_batch_bytes=200)
    owner = Owner(logs, clock)
    for at in range(10):
        owner.writer.append(bytes([at]) * size)
        clock.advance(1)
    owner.writer.append(b"covers", keep_from=9)
    clock.advance(1)
    floor = decode_batch(logs.sent[-1][1]).floor
    later = Owner(logs, clock, owner.claim.epoch)
    indexes = [record.index for record in later.read]
    assert indexes == list(range(indexes[0], 12))
    assert 1 < indexes[0] <= 9
    kept = [bytes([at]) * size for at in range(indexes[0] - 1, 10)]
    assert [record.payload for record in later.read] == [*kept, b"covers"]
    assert later.end.floor == floor


def test_nothing_that_is_covered_stays_if_the_next_record_begins_a_batch(clock: FakeClock, logs: ScriptedLogs) -> None:
    owner = Owner(logs, clock)
    for at in range(10):
        owner.writer.append(b"%d" % at)
    mark = owner.writer.append(b"mark", begins_batch=True)
    owner.writer.append(b"after")
    clock.advance(1)
    owner.writer.append(b"covers", keep_from=mark)
    clock.advance(1)
    later = Owner(logs, clock, owner.claim.epoch)
    assert [record.payload for record in later.read] == [b"mark", b"after", b"covers"]


def test_a_record_cannot_cover_what_does_not_exist(clock: FakeClock, logs: ScriptedLogs) -> None:
    owner = Owner(logs, clock)
    with pytest.raises(ValueError, match="does not exist yet"):
        owner.writer.append(b"a", keep_from=3)
    assert owner.writer.append(b"a", keep_from=1) == 1
