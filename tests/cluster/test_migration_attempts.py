"""A migration writes what a store has into an empty log, from any point at which an earlier attempt ended."""

from collections.abc import Callable

import pytest

from gateway.cluster.errors import ClusterMismatch, LogDamaged
from gateway.cluster.log_replay import LogRecord, replay
from gateway.cluster.queue_log import UNCLAIMED, AppendAnswer, AppendOutcome, Claim, Epoch, QueueId
from gateway.cluster.replication import checkpoint
from gateway.cluster.replication.local_store import DurableRecord
from gateway.cluster.replication.log_copy import LogCopy
from gateway.cluster.replication.log_records import CHECKPOINT_BEGIN, MIGRATION_BEGIN, MIGRATION_END, STEP
from gateway.cluster.replication.migration import LogBeforeMigration, Migration, MigrationProgress
from gateway.cluster.replication.replaying import RecordApplier
from gateway.cluster.replication.step_codec import StepEncoder
from gateway.kernel.journal.changes import Change, Enqueued, Put, Stored
from gateway.testing.clock import FakeClock
from gateway.testing.store_session import message_with, queue_record, vhost_record
from gateway_memory import MemoryStore
from tests.cluster.scripted_logs import ScriptedLogs, run

LOG = QueueId(1)


def records_of(count: int, first: bytes = b"0") -> list[DurableRecord]:
    """Return entities, and some messages of a queue; the body of the first one is given."""
    found: list[DurableRecord] = [Put(vhost_record("/")), Put(queue_record(1))]
    found += (Stored(message_with(number, first if number == 1 else b"%d" % number)) for number in range(1, count))
    found += (Enqueued(1, number, number, 0) for number in range(1, count))
    return found


class KilledLogs(ScriptedLogs):
    """Logs that take so many more appends before the process is killed."""

    left = 0

    def append(self, claim: Claim, number: int, data: bytes, answered: Callable[[AppendAnswer], None]) -> None:
        if self.left:
            self.left -= 1
            super().append(claim, number, data, answered)


class Attempts:
    """Attempts to migrate, each under a claim of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(checkpoint, "MOST_RECORDS", 3)
        self.clock = FakeClock()
        self.logs = KilledLogs(self.clock, 400)
        self.epoch = Epoch(UNCLAIMED)
        self.reports: list[str] = []
        self.reads = 0

    def attempt(self, records: list[DurableRecord], appends: int = 1000, source: str = "x") -> Migration:
        """Migrate until the process is killed after some appends."""
        claim = run(self.logs.claim(LOG, "migration", self.epoch))
        self.epoch = claim.epoch
        before = LogBeforeMigration()
        end = run(replay(self.logs, claim, before.take))
        before.require_free_for(source)
        assert not before.is_complete

        def read() -> list[DurableRecord]:
            self.reads += 1
            return records

        migration = Migration(self.logs, self.clock, claim, end, before, source, read, self)
        self.logs.left = appends
        migration.start()
        for _ in range(10):
            self.clock.advance(1)
        migration.close()
        return migration

    def built(self) -> bytes:
        """Return what a new leader builds its copy from, as the bytes of one step."""
        claim = run(self.logs.claim(LOG, "a", self.epoch))
        self.epoch = claim.epoch
        found: list[Change] = []
        applier = RecordApplier(found.extend)
        run(replay(self.logs, claim, applier.take))
        applier.finish()
        assert applier.is_complete
        return StepEncoder().encode(found)

    def on_progress(self, progress: MigrationProgress) -> None:
        pass

    def on_done(self) -> None:
        self.reports.append("done")

    def on_failed(self, reason: str) -> None:
        self.reports.append("failed")

    def on_waiting(self, reason: str) -> None:
        self.reports.append(f"waiting: {reason}")


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Attempts:
    return Attempts(monkeypatch)


def test_a_migration_in_one_go(attempts: Attempts) -> None:
    records = records_of(20)
    attempts.attempt(records)
    assert attempts.reports == ["done"]
    assert attempts.built() == StepEncoder().encode(records)


@pytest.mark.parametrize("appends", range(1, 12))
def test_an_attempt_goes_on_where_the_last_one_was_killed(attempts: Attempts, appends: int) -> None:
    records = records_of(30)
    for _ in range(30):
        migration = attempts.attempt(records, appends)
        if attempts.reports:
            break
    assert attempts.reports == ["done"]
    assert migration.progress.records == len(records)
    assert attempts.built() == StepEncoder().encode(records)


@pytest.mark.parametrize("changed", [records_of(30, b"other"), records_of(8), records_of(60)])
def test_a_source_that_has_changed_is_migrated_from_the_beginning(
    attempts: Attempts, changed: list[DurableRecord]
) -> None:
    attempts.attempt(records_of(30), 4)
    assert attempts.reports == []
    attempts.attempt(changed)
    assert attempts.reports == ["done"]
    assert attempts.built() == StepEncoder().encode(changed)


def test_no_leader_has_a_part_of_a_migration(attempts: Attempts) -> None:
    attempts.attempt(records_of(30), 3)
    claim = run(attempts.logs.claim(LOG, "a", attempts.epoch))
    failures: list[str] = []
    copy = LogCopy(LOG, MemoryStore(), attempts.clock, failures.append)
    end = run(copy.read_rest(attempts.logs, claim))
    attempts.clock.advance(1)
    assert copy.writer.applier.records > 1
    with pytest.raises(ClusterMismatch, match="has not ended: start gateway migrate again"):
        copy.rebuilt(end)
    assert failures == []


def test_another_source_is_refused(attempts: Attempts) -> None:
    attempts.attempt(records_of(30), 3)
    with pytest.raises(ClusterMismatch, match=r"another broker \(x\) into this cluster has begun; this one is y"):
        attempts.attempt(records_of(30), source="y")


def test_a_cluster_that_was_used_is_refused() -> None:
    for used in ([STEP], [MIGRATION_BEGIN + b"x", STEP], [MIGRATION_BEGIN + b"x", MIGRATION_END, STEP]):
        before = LogBeforeMigration()
        for index, payload in enumerate(used):
            before.take(LogRecord(index, payload))
        with pytest.raises(ClusterMismatch, match="the cluster is not empty"):
            before.require_free_for("x")


def test_a_migration_that_is_complete_is_known(attempts: Attempts) -> None:
    attempts.attempt(records_of(5))
    claim = run(attempts.logs.claim(LOG, "migration", attempts.epoch))
    before = LogBeforeMigration()
    run(replay(attempts.logs, claim, before.take))
    before.require_free_for("x")
    assert before.is_complete
    with pytest.raises(ClusterMismatch, match=r"another broker \(x\) into this cluster was made"):
        before.require_free_for("y")


def test_a_gateway_that_claims_the_log_ends_the_attempt(attempts: Attempts) -> None:
    attempts.attempt(records_of(30), 2)
    attempts.logs.answers = [AppendAnswer(AppendOutcome.UNANSWERED, reason="away"), AppendAnswer(AppendOutcome.DEPOSED)]
    attempts.attempt(records_of(30))
    assert attempts.reports == ["waiting: away", "failed"]


@pytest.mark.parametrize(
    "kinds", [(CHECKPOINT_BEGIN, MIGRATION_BEGIN), (MIGRATION_END,), (CHECKPOINT_BEGIN, MIGRATION_END)]
)
def test_the_marks_of_a_migration_are_at_their_places(kinds: tuple[bytes, ...]) -> None:
    applier = RecordApplier(lambda changes: None)
    *before, last = (LogRecord(index, kind) for index, kind in enumerate(kinds))
    for record in before:
        applier.take(record)
    with pytest.raises(LogDamaged, match="where none may"):
        applier.take(last)
