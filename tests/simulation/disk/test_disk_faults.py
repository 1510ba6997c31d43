"""The faults of the simulated disk, and what the LMDB store does about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import Put
from gateway.simulation.disk import ProcessKilled
from gateway.testing.store_session import entities_in, vhost_record
from gateway_lmdb import LmdbStore
from tests.simulation.disk.small_world import DATA, SmallWorld
from tests.storage.listeners import RecordingListener


class Run:
    """A store in a small world, with names that it should have."""

    def __init__(self, seed: int = 0) -> None:
        self.world = SmallWorld(seed)
        self.start()

    def start(self) -> None:
        self.store: LmdbStore = self.world.open(retry_interval_s=0.5)
        self.listener = RecordingListener()
        self.store.listen(self.listener)
        self.names = {entity.name for entity in entities_in(list(self.store.recover()))}  # type: ignore[attr-defined]

    def append(self, *names: str) -> int:
        lsn = 0
        for name in names:
            lsn = self.store.append([Put(vhost_record(name))])
        return lsn

    def commit(self, *names: str) -> None:
        lsn = self.append(*names)
        self.world.run_until(lambda: self.listener.watermark >= lsn)

    def restart_after(self, accident: str) -> set[str]:
        getattr(self.world.disk, accident)()
        self.start()
        return self.names


@pytest.mark.parametrize("accident", ["kill", "power_cut"])
def test_what_was_reported_survives(accident: str) -> None:
    run = Run()
    run.commit("a", "b")
    assert run.restart_after(accident) == {"a", "b"}


def test_a_commit_without_its_last_sync_survives_a_kill_but_not_every_loss_of_power() -> None:
    found = []
    for seed in range(20):
        run = Run(seed)
        run.append("a")
        run.world.run_until(lambda run=run: run.world.log[-1] == "lmdb root")
        found.append(run.restart_after("power_cut"))
    assert {frozenset(each) for each in found} == {frozenset(), frozenset({"a"})}
    run = Run()
    run.append("a")
    run.world.run_until(lambda: run.world.log[-1] == "lmdb root")
    assert run.restart_after("kill") == {"a"}


def test_a_full_disk_stalls_the_store_until_it_has_space() -> None:
    run = Run()
    run.world.disk.fill()
    lsn = run.append("a")
    run.world.run_until(lambda: run.listener.has("stalled"))
    run.world.run_for(3)
    assert run.listener.watermark == 0
    assert run.world.disk.free_bytes == 0
    run.world.disk.drain()
    run.world.run_until(lambda: run.listener.has("resumed"))
    assert run.listener.watermark == lsn


def test_a_sync_that_fails_is_repeated() -> None:
    run = Run()
    run.world.disk.disturb(2)
    run.commit("a")
    assert run.listener.reports[0] == "stalled: mdb_txn_commit: Input/output error"
    assert run.restart_after("power_cut") == {"a"}


def test_a_root_that_cannot_be_written_is_final_until_the_next_start() -> None:
    run = Run()
    run.commit("a")
    run.world.disk.fail()
    run.append("b")
    run.world.run_until(lambda: run.listener.has("failed"))
    with pytest.raises(StorageError, match="environment had fatal error"):
        run.store.messages([1])
    assert run.listener.watermark == 2, "the redo log is durable without LMDB"
    assert run.restart_after("kill") == {"a", "b"}
    run.commit("c")


def test_a_disk_that_lies_loses_the_last_commits() -> None:
    names = [str(number) for number in range(10)]
    kept = set()
    for seed in range(20):
        run = Run(seed)
        run.commit("before")
        run.world.disk.lie()
        for name in names:
            run.commit(name)
        found = run.restart_after("power_cut") - {"before"}
        assert found == set(names[: len(found)]), "not the first ones"
        kept.add(len(found))
    assert len(kept) > 5


def test_a_sync_after_a_lie_makes_everything_durable() -> None:
    run = Run()
    run.world.disk.lie()
    run.commit("a")
    run.world.disk.tell_the_truth()
    run.commit("b")
    assert run.restart_after("power_cut") == {"a", "b"}


def test_slow_syncs_take_virtual_time() -> None:
    run = Run()
    run.world.disk.sync_delay_s = 2.0
    began_s = run.world.now_s
    run.commit("a")
    assert 4 <= run.world.now_s - began_s < 4.1, "a commit has two syncs"
    assert 4 <= run.store.commit_times.total_s < 4.1


def test_a_small_commit_after_the_first_has_one_sync() -> None:
    run = Run()
    run.commit("a")
    run.world.run_for(1)  # the redo log is created
    run.world.disk.sync_delay_s = 2.0
    began_s = run.world.now_s
    run.commit("b")
    assert 2 <= run.world.now_s - began_s < 2.1
    assert run.world.log[-2:] == [run.world.log[-2], "sync redo.log"]
    assert run.world.log[-2].startswith("write redo.log")


def test_a_redo_log_that_cannot_be_written_is_left_for_commits_of_the_tables() -> None:
    run = Run()
    run.commit("a")
    run.world.disk.disturb()
    run.commit("b")
    run.commit("c")
    assert [report for report in run.listener.reports if isinstance(report, str)] == []
    assert "write redo.log" not in " ".join(run.world.log[-4:])
    assert run.restart_after("power_cut") == {"a", "b", "c"}
    run.commit("d")
    run.commit("e")
    assert "sync redo.log" in run.world.log, "the next start uses it again"
    assert run.restart_after("power_cut") == {"a", "b", "c", "d", "e"}


def test_a_process_is_killed_at_any_operation_of_its_start() -> None:
    for operations in range(8):
        world = SmallWorld(0)
        with pytest.raises(ProcessKilled):
            world.open(killed_after=operations)
        assert not world.disk.is_in_use
        world.open().close()


def test_a_killed_process_writes_nothing_more() -> None:
    run = Run()
    run.append("a")
    run.world.disk.kill()
    count = len(run.world.log)
    run.world.run_for(10)
    assert len(run.world.log) == count
    with pytest.raises(ProcessKilled):
        run.store.close()


def test_a_second_store_in_a_directory_is_refused() -> None:
    world = SmallWorld(0)
    disk = world.disk.process(world.new_threads())
    disk.make_directory(DATA, parents=True)
    disk.lock(DATA)
    with pytest.raises(StorageError, match="in use"):
        disk.lock(DATA)


def test_a_compaction_keeps_the_content_and_frees_space() -> None:
    run = Run()
    run.commit(*(f"name {number}" for number in range(500)))
    for number in range(480):
        run.store.append([Put(vhost_record(f"name {number}", "x" * 3000))])
    run.commit("last")
    run.world.run_for(1)  # the redo log is applied
    for number in range(480):
        run.store.append([Put(vhost_record(f"name {number}"))])
    run.commit("end")
    run.world.run_for(1)
    before = run.store.usage
    assert run.store.compact()
    run.world.run_until(lambda: run.store.compaction is not None and run.store.compaction.is_over)
    assert run.store.compaction is not None
    assert run.store.compaction.state == "done"
    assert run.store.usage.file_bytes < before.file_bytes / 2
    run.commit("after")
    expected = {f"name {number}" for number in range(500)} | {"last", "end", "after"}
    assert run.restart_after("power_cut") == expected


def test_an_unsynced_file_is_torn_in_a_loss_of_power() -> None:
    sizes = set()
    for seed in range(30):
        world = SmallWorld(seed)
        disk = world.disk.process(world.new_threads())
        disk.make_directory(DATA, parents=True)
        disk.sync_directories(DATA)
        file = disk.create(DATA / "file")
        file.write(b"synced")
        file.sync()
        file.write(bytes(100))
        disk.sync_directories(DATA)
        world.disk.power_cut()
        content = world.disk.content(DATA / "file")
        assert content.startswith(b"synced")
        sizes.add(len(content))
    assert len(sizes) > 10


def test_an_unsynced_name_may_be_missing_after_a_loss_of_power() -> None:
    found = []
    for seed in range(20):
        world = SmallWorld(seed)
        disk = world.disk.process(world.new_threads())
        disk.make_directory(DATA, parents=True)
        disk.sync_directories(DATA)
        disk.create(DATA / "file")
        world.disk.power_cut()
        found.append(world.disk.paths())
    assert {len(each) for each in found} == {0, 1}
    assert [DATA / "file"] in found
    assert Path("/") not in found[0]


def test_a_compaction_whose_file_cannot_be_made_durable_ends_the_store() -> None:
    run = Run()
    run.commit("a")
    assert run.store.compact()
    run.world.run_until(lambda: run.world.log[-1] == "rename data.mdb data.mdb")
    run.world.disk.disturb()
    run.world.run_until(lambda: run.listener.has("failed"))
    assert run.listener.reports[-1] == "failed: the compacted store cannot be opened: [Errno 5] Input/output error"
    assert run.restart_after("power_cut") == {"a"}
