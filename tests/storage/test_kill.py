"""A process that is killed at any moment leaves what it reported, and no half of anything."""

import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import lmdb

from gateway.kernel.journal.changes import Recovered
from gateway.kernel.messages.chunks import entries
from gateway.testing.store_session import content_of, places_in, segments_in
from gateway_lmdb import LmdbStore
from gateway_memory import MemoryStore
from tests.storage import killed

KILLS = 24


def killed_after(seconds: float, path: Path) -> int:
    """Let a process write for a while, kill it, and return the last turn it had reported; 0 if none."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.storage.killed", str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    timers: list[threading.Timer] = []
    reported = 0
    assert child.stdout is not None
    with child, child.stdout as lines:
        for line in lines:
            if not timers:  # it is writing now: the time runs from here
                timers.append(threading.Timer(seconds, child.send_signal, [signal.SIGKILL]))
                timers[0].start()
            if line.endswith("\n"):
                reported = int(line)
    assert child.returncode == -signal.SIGKILL, "the child ended by itself"
    return reported


def assert_whole(path: Path, reported: int) -> int:
    """Check that the store holds exactly what some number of turns leave, at least the reported ones."""
    store = LmdbStore(path, call_in_kernel=lambda call: None)
    found = list(store.recover())
    turns = killed.last_turn(found)
    assert turns >= reported, f"turn {reported} was reported durable, but only {turns} are there"
    expected = MemoryStore()
    for number in range(1, turns + 1):
        expected.append(killed.turn(number))
    expected.commit()
    assert places_in(found) == places_in(expected.recover())
    assert_stream_whole(store, expected, found)
    ids = {place[2] for place in places_in(found)}
    for message_id in ids:
        assert store.messages([message_id]) == [content_of(killed.message(message_id))]
    wait_for_sealer(store)
    assert_files_whole(path, found)
    store.close()
    assert stored_contents(path) == len(ids), "contents are left that no queue holds"
    return turns


def assert_stream_whole(store: LmdbStore, expected: MemoryStore, found: list[Recovered]) -> None:
    """Check that a stream holds what it should: nothing missing, nothing twice, no gap, and nothing truncated."""
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
    """Wait until the sealer is through with what the start left it."""
    is_through = threading.Event()
    store._sealer._tasks.put(is_through.set)
    assert is_through.wait(20)


def assert_files_whole(path: Path, found: list[Recovered]) -> None:
    """Check that files are there for the segments that are, no others, and none by half."""
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
    moments = random.Random(7)
    turns = 0
    for _ in range(KILLS):
        reported = killed_after(moments.uniform(0.0, 0.15), tmp_path / "store")
        assert reported > turns, "the killed process had reported nothing new"
        turns = assert_whole(tmp_path / "store", reported)
