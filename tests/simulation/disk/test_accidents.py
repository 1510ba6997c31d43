"""Data that LMDB's store reports durable survives each accident of a simulated disk; broken stores are caught."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from gateway.kernel.journal.changes import StreamSegment
from gateway.simulation.disk import ProcessDisk
from gateway.simulation.disk.process_disk import SimulatedLogFile
from gateway_lmdb import redo_log, redo_replay
from gateway_lmdb.batch import Batch
from gateway_lmdb.environment import Environment
from gateway_lmdb.redo_log import RedoLog
from gateway_lmdb.sealer import Sealer
from gateway_lmdb.segment_files import SegmentFiles
from gateway_lmdb.staged import Append
from gateway_lmdb.stream_batch import Filed
from gateway_lmdb.writer import Writer
from tests.effort import examples
from tests.simulation.disk.machine import Machine


def test_what_is_reported_durable_survives_any_accidents() -> None:
    for seed in range(examples(80)):
        Machine(seed).run()


def test_a_seed_decides_every_operation_of_the_disk() -> None:
    def log(seed: int) -> list[str]:
        machine = Machine(seed)
        machine.run()
        return machine.world.log

    logs = [log(seed) for seed in range(5)]
    assert [log(seed) for seed in range(5)] == logs
    assert all(len(each) > 50 for each in logs)
    assert logs[0] != logs[1]


# ---- Broken stores --------------------------------------------------------------------------------------------------

Patch = pytest.MonkeyPatch


def _commits_are_not_synced(patch: Patch) -> None:
    open_lmdb = ProcessDisk.open_lmdb
    patch.setattr(
        ProcessDisk, "open_lmdb", lambda disk, path, **options: open_lmdb(disk, path, **{**options, "sync": False})
    )


def _reports_come_before_the_commit(patch: Patch) -> None:
    write = Writer._write

    def report_first(writer: Writer, batch: object) -> None:
        if batch.lsn:  # type: ignore[attr-defined]
            writer._listener.on_durable(batch.lsn)  # type: ignore[attr-defined]
        write(writer, batch)  # type: ignore[arg-type]

    patch.setattr(Writer, "_write", report_first)


def _an_append_is_split(patch: Patch) -> None:
    stage = Writer.stage

    def stage_halves(writer: Writer, append: Append) -> None:
        middle = len(append.changes) // 2
        stage(writer, Append(append.lsn, append.changes[:middle]))
        stage(writer, Append(append.lsn, append.changes[middle:]))

    patch.setattr(Writer, "stage", stage_halves)


def _a_failed_commit_counts_as_done(patch: Patch) -> None:
    attempt = Writer._try

    def forget(writer: Writer, batch: object) -> None:
        attempt(writer, batch)  # type: ignore[arg-type]

    patch.setattr(Writer, "_try", forget)


def _a_start_does_not_sync_what_a_killed_process_wrote(patch: Patch) -> None:
    patch.setattr(Environment, "_sync_remains", lambda environment, is_new: None)


def _only_a_first_start_syncs_the_name_of_the_file(patch: Patch) -> None:
    def sync(environment: Environment, is_new: bool) -> None:
        environment._lmdb.sync(True)
        if is_new:
            environment.disk.sync_directories(environment.path)

    patch.setattr(Environment, "_sync_remains", sync)


def _files_of_segments_are_not_synced(patch: Patch) -> None:
    write = SegmentFiles.write

    def write_unsynced(files: SegmentFiles, path: Path, pieces: Iterable[bytes]) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr("gateway.simulation.disk.process_disk.SimulatedNewFile.sync", lambda file: None)
            write(files, path, pieces)

    patch.setattr(SegmentFiles, "write", write_unsynced)


def _names_of_segments_are_not_synced(patch: Patch) -> None:
    sync = ProcessDisk.sync_directories
    patch.setattr(ProcessDisk, "sync_directories", lambda disk, path: sync(disk, path) if path.name == "data" else None)


def _chunks_are_removed_before_their_file_is_there(patch: Patch) -> None:
    write = Sealer._write

    def remove_first(sealer: Sealer, segment: StreamSegment) -> None:
        sealer._filed(Filed(segment.stream_id, segment.first, segment.end))
        write(sealer, segment)

    patch.setattr(Sealer, "_write", remove_first)


def _unfinished_files_get_their_name_at_once(patch: Patch) -> None:
    patch.setattr("gateway_lmdb.segment_files.UNFINISHED", "")


def _records_of_the_redo_log_are_not_synced(patch: Patch) -> None:
    def write(file: SimulatedLogFile, data: bytes, position: int) -> None:
        file._file.write(data, position)

    patch.setattr(SimulatedLogFile, "write", write)


def _the_redo_log_is_not_replayed(patch: Patch) -> None:
    patch.setattr(redo_replay, "replay", lambda *arguments: None)


def _an_era_never_ends(patch: Patch) -> None:
    patch.setattr(RedoLog, "next_era", 7)


def _checksums_of_the_redo_log_are_ignored(patch: Patch) -> None:
    patch.setattr(redo_log, "crc32", lambda data, start=0: 0)


def _a_full_redo_log_begins_anew_without_a_commit(patch: Patch) -> None:
    takes = RedoLog.takes

    def rewind(log: RedoLog, batch: Batch) -> bool:
        if log._number > 2:
            log._number = log._end = 0
        return takes(log, batch)

    patch.setattr(RedoLog, "takes", rewind)


def _staged_contents_are_dropped_before_they_are_in_the_tables(patch: Patch) -> None:
    report = Writer._report
    patch.setattr(Writer, "_report", lambda writer, batch, is_applied=False: report(writer, batch, is_applied=True))


BROKEN: list[Callable[[Patch], None]] = [
    _commits_are_not_synced,
    _reports_come_before_the_commit,
    _an_append_is_split,
    _a_failed_commit_counts_as_done,
    _a_start_does_not_sync_what_a_killed_process_wrote,
    _only_a_first_start_syncs_the_name_of_the_file,
    _files_of_segments_are_not_synced,
    _names_of_segments_are_not_synced,
    _chunks_are_removed_before_their_file_is_there,
    _unfinished_files_get_their_name_at_once,
    _records_of_the_redo_log_are_not_synced,
    _the_redo_log_is_not_replayed,
    _an_era_never_ends,
    _checksums_of_the_redo_log_are_ignored,
    _a_full_redo_log_begins_anew_without_a_commit,
    _staged_contents_are_dropped_before_they_are_in_the_tables,
]


def seeds_until_caught(most: int) -> int | None:
    """Return the number of seeds until one fails; ``None`` if none does."""
    for seed in range(most):
        machine = None
        try:
            machine = Machine(seed)
            machine.run()
        except AssertionError:
            return seed + 1
        finally:
            if machine is not None:
                machine.world.disk.kill()
    return None


@pytest.mark.parametrize("breaks", BROKEN, ids=lambda breaks: breaks.__name__.strip("_"))
def test_a_broken_store_is_caught(breaks: Callable[[Patch], None], monkeypatch: Patch) -> None:
    breaks(monkeypatch)
    assert seeds_until_caught(1000) is not None
