"""A damaged or foreign file is refused with one line, before LMDB maps missing pages."""

import random
import subprocess
import sys
from pathlib import Path

import lmdb
import pytest

from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import Put
from gateway.testing.store_session import queue_record
from gateway_lmdb.inspection import require_sound, require_whole
from tests.running import PROJECT
from tests.storage.listeners import RecordingListener
from tests.storage.places import LmdbPlace
from tests.storage.test_lmdb_store import draining, publishing


@pytest.fixture
def filled(place: LmdbPlace) -> Path:
    """A closed store of some hundred pages, some of them free."""
    store, listener = place.open(), RecordingListener()
    store.listen(listener)
    store.append([Put(queue_record(1)), *publishing(1, 300, 2000), *publishing(301, 310, 9000)])
    place.pump(lambda: listener.watermark >= 1)
    store.append(draining(50, 200))
    place.pump(lambda: listener.watermark >= 2)
    store.close()
    return place.path


def damaged(store: Path, how: str) -> list[tuple[str, str]]:
    program = [sys.executable, "-m", "tests.storage.damaging", str(store), str(store.parent / "work"), how]
    done = subprocess.run(
        program, cwd=PROJECT, capture_output=True, text=True, timeout=240, check=False, stdin=subprocess.DEVNULL
    )
    outcomes = [line.split("\t") for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"ended with {done.returncode} after {outcomes[-1:]}: {done.stderr[-2000:]}"
    return [(what, outcome) for what, outcome in outcomes]


def test_a_truncated_file_is_refused_in_one_line(filled: Path) -> None:
    outcomes = damaged(filled, "truncate")
    assert len(outcomes) > 60
    assert all(outcome.startswith("refused: ") for _, outcome in outcomes), outcomes
    assert any("it was truncated" in outcome for _, outcome in outcomes)


def test_random_bytes_are_refused_or_skipped_and_never_crash_the_process(filled: Path) -> None:
    outcomes = dict(damaged(filled, "overwrite"))
    assert outcomes["all random"].startswith("refused: ")
    assert "is damaged" in outcomes["all random"]
    assert sum(outcome.startswith("refused: ") for outcome in outcomes.values()) > 20


def test_an_undamaged_file_passes_the_inspection_after_any_writes(tmp_path: Path) -> None:
    rng = random.Random(1)
    with lmdb.open(str(tmp_path), max_dbs=4, map_size=1 << 30, sync=False) as environment:
        tables = [environment.open_db(b"t%d" % number) for number in range(3)]
        for _ in range(60):
            with environment.begin(write=True) as transaction:
                for _ in range(rng.randrange(150)):
                    key, table = rng.randrange(2000).to_bytes(8), rng.choice(tables)
                    if rng.random() < 0.5:
                        transaction.delete(key, db=table)
                    else:
                        transaction.put(key, bytes(rng.choice([10, 100, 3000, 20_000])), db=table)
            require_whole(tmp_path / "data.mdb")
            assert require_sound(tmp_path / "data.mdb") > 0


def test_an_empty_file_becomes_a_store(place: LmdbPlace) -> None:
    place.path.mkdir(parents=True)
    (place.path / "data.mdb").touch()
    assert list(place.open().recover()) == []


def test_an_lmdb_file_of_another_program_is_refused_and_unchanged(place: LmdbPlace) -> None:
    with lmdb.open(str(place.path), max_dbs=4) as environment, environment.begin(write=True) as transaction:
        transaction.put(b"theirs", b"data", db=environment.open_db(b"table", transaction))
    before = (place.path / "data.mdb").read_bytes()
    with pytest.raises(StorageError, match=r"data\.mdb is an LMDB file, but not a store of a gateway"):
        place.open()
    assert (place.path / "data.mdb").read_bytes() == before
