"""Compaction of a store in use loses, adds and changes nothing.

Rules: R131.
"""

import random
import sys
import time

import pytest

from gateway.kernel.journal.changes import (
    Change,
    Dequeued,
    Discarded,
    Enqueued,
    Put,
    Removed,
    Sealed,
    Stored,
    StreamSegment,
    Truncated,
)
from gateway.kernel.messages.chunks import entries
from gateway.testing.store_session import entities_in, message_with, queue_record, vhost_record
from gateway.testing.store_streams import segment, stream_message
from gateway_lmdb import LmdbStore, compaction
from gateway_lmdb.compaction import CompactionProgress
from gateway_memory import MemoryStore
from tests.storage.listeners import RecordingListener
from tests.storage.places import TIMEOUT_S, LmdbPlace
from tests.storage.test_lmdb_store import draining, publishing

STREAM = 2


def open_store(
    place: LmdbPlace, retry_interval_s: float = 0.01
) -> tuple[LmdbStore, RecordingListener, list[CompactionProgress]]:
    states: list[CompactionProgress] = []
    place.store = store = LmdbStore(
        place.path, call_in_kernel=place.calls.put, retry_interval_s=retry_interval_s, on_compaction=states.append
    )
    listener = RecordingListener()
    store.listen(listener)
    return store, listener, states


def fill_and_drain(place: LmdbPlace, store: LmdbStore, listener: RecordingListener) -> None:
    """Create a file that is mostly free."""
    store.append([Put(queue_record(1)), *publishing(1, 3000, 2000)])
    place.pump(lambda: listener.watermark >= 1)  # otherwise they are added and removed in one batch
    store.append(draining(1, 2900))
    place.pump(lambda: listener.watermark >= 2)


def wait_until_durable(place: LmdbPlace, listener: RecordingListener, lsn: int) -> None:
    place.pump(lambda: listener.watermark >= lsn)


def wait_until_ended(place: LmdbPlace, states: list[CompactionProgress]) -> CompactionProgress:
    place.pump(lambda: bool(states) and states[-1].is_over)
    return states[-1]


class RandomChanges:
    """Random changes of messages, entities and a stream, as a broker appends them."""

    def __init__(self) -> None:
        self._rng = random.Random(3)
        self._number = 0
        self._waiting: list[int] = []
        self._spilled: list[int] = []
        self._end = self._sealed = 0
        self._segments: list[tuple[int, int]] = []

    def step(self) -> list[Change]:
        changes: list[Change] = []
        actions = [self._publish, self._publish, self._settle, self._spill, self._put, self._log]
        for _ in range(self._rng.randrange(1, 6)):
            changes += self._rng.choice(actions)()
        return changes

    def _publish(self) -> list[Change]:
        self._number += 1
        self._waiting.append(self._number)
        return [Stored(message_with(self._number, bytes(500))), Enqueued(1, self._number, self._number, 0)]

    def _settle(self) -> list[Change]:
        if not self._waiting:
            return []
        number = self._waiting.pop(self._rng.randrange(len(self._waiting)))
        return [Dequeued(number), Discarded(number)]

    def _spill(self) -> list[Change]:
        self._number += 1
        self._spilled.append(self._number)
        changes: list[Change] = [Stored(message_with(self._number), is_spilled=True)]
        if len(self._spilled) > 5:
            changes.append(Discarded(self._spilled.pop(0), is_spilled=True))
        return changes

    def _put(self) -> list[Change]:
        name = str(self._rng.randrange(20))
        if self._rng.random() < 0.3:
            return [Removed("vhost", (name,))]
        return [Put(vhost_record(name, str(self._number)))]

    def _log(self) -> list[Change]:
        changes: list[Change] = []
        for _ in range(self._rng.randrange(20)):
            changes.append(stream_message(STREAM, self._end, 200))
            self._end += 1
        if self._end - self._sealed > 60:
            changes.append(Sealed(segment(STREAM, self._sealed, self._end)))
            self._segments.append((self._sealed, self._end))
            self._sealed = self._end
        if len(self._segments) > 4:
            changes.append(Truncated(STREAM, self._segments.pop(0)[1]))
        return changes

    @property
    def spilled(self) -> list[int]:
        """The ids of spilled contents."""
        return self._spilled


def test_a_store_that_is_compacted_repeatedly_keeps_its_content(place: LmdbPlace) -> None:
    store, listener, states = open_store(place)
    model, random_changes = MemoryStore(), RandomChanges()
    begin: list[Change] = [Put(queue_record(1)), Put(queue_record(STREAM))]
    lsn = store.append(list(begin))
    model.append(begin)
    for _ in range(4):
        assert store.compact()
        states.clear()
        while not (states and states[-1].is_over):
            changes = random_changes.step()
            lsn = store.append(changes)
            model.append(changes)
            wait_until_durable(place, listener, lsn)
        assert states[-1].state == "done", states[-1]
        assert store.messages(random_changes.spilled) == model.messages(random_changes.spilled), (
            "spilled contents were lost"
        )
    model.commit()
    store.close()
    store, _, _ = open_store(place)
    found, expected = list(store.recover()), list(model.reopened().recover())
    assert sorted(map(repr, entities_in(found))) == sorted(map(repr, entities_in(expected)))
    places = [(each.position, each.message_id) for each in found if isinstance(each, Enqueued)]
    assert places == [(each.position, each.message_id) for each in expected if isinstance(each, Enqueued)]
    ids = [message_id for _, message_id in places]
    assert store.messages(ids) == model.messages(ids)
    assert _lines(store, STREAM) == _lines(model.reopened(), STREAM)


def _lines(store: LmdbStore | MemoryStore, stream_id: int) -> list[tuple[int, int, bytes, bytes]]:

    segments = [each for each in store.recover() if isinstance(each, StreamSegment) and each.stream_id == stream_id]
    offset, found = segments[0].first, []
    while (chunks := store.stream_chunks(stream_id, offset, 10_000)) is not None:
        found += entries(chunks, offset)
        offset = found[-1][0] + 1
    return found


def test_compaction_frees_space_and_reports_its_progress(place: LmdbPlace) -> None:
    store, listener, states = open_store(place)
    fill_and_drain(place, store, listener)
    before = store.usage
    assert before.free_bytes > before.file_bytes / 2
    assert store.compact()
    assert not store.compact(), "a second compaction started"
    end = wait_until_ended(place, states)
    assert [progress.state for progress in states] == ["copying", "catching up", "done"]
    assert end.before == before.file_bytes
    assert end.after == (place.path / "data.mdb").stat().st_size < before.file_bytes / 4
    assert store.usage.free_bytes < before.free_bytes / 10
    assert store.compact(), "a later compaction did not start"
    assert wait_until_ended(place, states[3:] or states).state == "done"


def test_compaction_fails_while_the_store_is_too_busy(place: LmdbPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MOST_PENDING", 1000)
    store, listener, states = open_store(place)
    fill_and_drain(place, store, listener)
    assert store.compact()
    lsn, number = 2, 3000
    while not (states and states[-1].is_over):
        number += 1
        lsn = store.append(publishing(number, number, 2000))
        wait_until_durable(place, listener, lsn)
    assert (states[-1].state, "were written meanwhile" in states[-1].reason) == ("failed", True)
    assert not (place.path / compaction.DIRECTORY).exists()
    store.append(publishing(number + 1, number + 1))
    place.pump(lambda: listener.watermark > lsn)


def test_compaction_does_not_start_without_free_disk_space(place: LmdbPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "_ROOM", 2**60)
    store, listener, states = open_store(place)
    fill_and_drain(place, store, listener)
    assert store.compact()
    assert "bytes of free disk space are needed" in wait_until_ended(place, states).reason


def test_a_failed_copy_leaves_the_store_unchanged(place: LmdbPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    store, listener, states = open_store(place)
    fill_and_drain(place, store, listener)
    assert store.compact()
    assert wait_until_ended(place, states).reason == "the copy ended with 1"
    store.append(publishing(4000, 4000))
    place.pump(lambda: listener.watermark >= 3)
    assert store.messages([4000]) != [None]


def test_a_store_that_closes_does_not_wait_for_a_compaction(place: LmdbPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", _sleeping_program(place))
    store, listener, _ = open_store(place)
    fill_and_drain(place, store, listener)
    assert store.compact()
    place.pump(lambda: store.compaction is not None and store.compaction.state == "copying")
    began = time.monotonic()
    store.close()
    assert time.monotonic() - began < TIMEOUT_S / 4
    assert not (place.path / compaction.DIRECTORY).exists()
    store, _, _ = open_store(place)
    assert len([each for each in store.recover() if isinstance(each, Enqueued)]) == 100


def _sleeping_program(place: LmdbPlace) -> str:
    program = place.path.parent / "sleeper"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o700)
    return str(program)
