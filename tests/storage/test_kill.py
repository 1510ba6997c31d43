"""A killed process leaves everything it reported, and no incomplete step."""

import os
import random
import signal
import sys
import threading
from multiprocessing import get_context
from pathlib import Path

import lmdb

from gateway.kernel.journal.changes import Recovered
from gateway.kernel.messages.chunks import entries
from gateway.testing.store_session import content_of, places_in, segments_in
from gateway_lmdb import LmdbStore
from gateway_memory import MemoryStore
from tests.storage import killed

KILLS = 24


def run_and_kill(seconds: float, path: Path) -> int:
    """Run a process for a while, kill it, and return the last step it reported; 0 if none."""
    read, write = os.pipe()
    child = get_context("fork").Process(target=write_until_killed, args=(path, write))
    child.start()
    os.close(write)
    timers: list[threading.Timer] = []
    reported = 0
    with os.fdopen(read) as lines:
        for line in lines:
            if not timers:  # it has started to write
                timers.append(threading.Timer(seconds, child.kill))
                timers[0].start()
            if line.endswith("\n"):
                reported = int(line)
    child.join()
    assert child.exitcode == -signal.SIGKILL, "the child exited before it was killed"
    return reported


def write_until_killed(path: Path, output: int) -> None:
    """Write to the store, in a fork: it has imported all it needs."""
    sys.stdout = os.fdopen(output, "w")
    killed.write_until_killed(str(path))


class Expected:
    """The store in memory after some number of steps, which grows with them."""

    def __init__(self) -> None:
        self._store = MemoryStore()
        self._steps = 0

    def after(self, steps: int) -> MemoryStore:
        """Return the store after this many steps; no fewer than before."""
        for number in range(self._steps + 1, steps + 1):
            self._store.append(killed.step(number))
        self._steps = steps
        self._store.commit()
        return self._store


def assert_complete(path: Path, reported: int, after_steps: Expected) -> int:
    """Check that the store contains exactly the result of some number of steps, at least the reported ones."""
    store = LmdbStore(path, call_in_kernel=lambda call: None)
    found = list(store.recover())
    steps = killed.last_step(found)
    assert steps >= reported, f"step {reported} was reported durable, but the store has only {steps}"
    expected = after_steps.after(steps)
    assert places_in(found) == places_in(expected.recover())
    assert_stream_complete(store, expected, found)
    ids = {place[2] for place in places_in(found)}
    for message_id in ids:
        assert store.messages([message_id]) == [content_of(killed.message(message_id))]
    wait_for_sealer(store)
    assert_files_complete(path, found)
    store.close()
    assert stored_contents(path) == len(ids), "unreferenced contents are left"
    return steps


def assert_stream_complete(store: LmdbStore, expected: MemoryStore, found: list[Recovered]) -> None:
    """Check that a stream has no missing, duplicate or truncated messages and no gaps."""
    segments = segments_in(expected.recover())
    assert segments_in(found)[:-1] == segments[:-1]
    assert (found_end := segments_in(found)[-1]).end == segments[-1].end
    assert found_end.first == segments[-1].first
    offset = segments[0].first
    assert not offset or store.stream_chunks(killed.STREAM, offset - 1, 1) is None
    while (data := store.stream_chunks(killed.STREAM, offset, 1)) is not None:
        expected_data = expected.stream_chunks(killed.STREAM, offset, 1 << 30)
        assert expected_data is not None
        read = list(entries(data, offset))
        assert read == list(entries(expected_data, offset))[: len(read)]
        offset = read[-1][0] + 1
    assert offset == segments[-1].end


def wait_for_sealer(store: LmdbStore) -> None:
    """Wait until the sealer has finished the tasks of the start."""
    is_done = threading.Event()
    store._sealer._tasks.put(is_done.set)
    assert is_done.wait(20)


def assert_files_complete(path: Path, found: list[Recovered]) -> None:
    """Check that there are complete files for exactly the existing segments."""
    directory = path / "streams" / str(killed.STREAM)
    files = sorted(file.name for file in directory.iterdir()) if directory.exists() else []
    sealed = [segment for segment in segments_in(found) if segment.is_sealed]
    assert files == [f"{segment.first:020}.chunks" for segment in sealed]
    for file, segment in zip(files, sealed, strict=True):
        offsets = [offset for offset, *_ in entries((directory / file).read_bytes())]
        assert offsets == list(range(segment.first, segment.end))


def stored_contents(path: Path) -> int:
    with lmdb.open(str(path), readonly=True, max_dbs=16) as environment:
        contents = environment.open_db(b"contents", create=False)
        with environment.begin() as transaction:
            return transaction.stat(contents)["entries"]


def test_reported_turns_survive_a_kill_and_no_turn_is_incomplete(tmp_path: Path) -> None:
    rng = random.Random(7)
    steps, expected = 0, Expected()
    for _ in range(KILLS):
        reported = run_and_kill(rng.uniform(0.0, 0.15), tmp_path / "store")
        assert reported > steps, "the killed process reported no new step"
        steps = assert_complete(tmp_path / "store", reported, expected)
