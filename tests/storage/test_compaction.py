"""Compacting the file of a store in use: nothing is lost, added or changed by it.

Rules: R131.
"""

import random
import time
from collections.abc import Iterator

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
from tests.storage.listeners import Heard
from tests.storage.places import PATIENCE_S, LmdbPlace
from tests.storage.test_lmdb_store import draining, publishing

STREAM = 2


@pytest.fixture
def place() -> Iterator[LmdbPlace]:
    place = LmdbPlace()
    yield place
    place.close()


def opened(place: LmdbPlace, retry_interval_s: float = 0.01) -> tuple[LmdbStore, Heard, list[CompactionProgress]]:
    told: list[CompactionProgress] = []
    place.store = store = LmdbStore(
        place.path, call_in_kernel=place.calls.put, retry_interval_s=retry_interval_s, on_compaction=told.append
    )
    heard = Heard()
    store.listen(heard)
    return store, heard, told


def drained(place: LmdbPlace, store: LmdbStore, heard: Heard) -> None:
    """Make a file of which most is free."""
    store.append([Put(queue_record(1)), *publishing(1, 3000, 2000)])
    place.pump(lambda: heard.watermark >= 1)  # else they come and go in one batch
    store.append(draining(1, 2900))
    place.pump(lambda: heard.watermark >= 2)


def durable(place: LmdbPlace, heard: Heard, lsn: int) -> None:
    place.pump(lambda: heard.watermark >= lsn)


def over(place: LmdbPlace, told: list[CompactionProgress]) -> CompactionProgress:
    place.pump(lambda: bool(told) and told[-1].is_over)
    return told[-1]


class Life:
    """What a broker might append, the same to two stores: messages, entities and a stream, at random."""

    def __init__(self) -> None:
        self._chance = random.Random(3)
        self._number = 0
        self._waiting: list[int] = []
        self._spilled: list[int] = []
        self._end = self._sealed = 0
        self._segments: list[tuple[int, int]] = []

    def step(self) -> list[Change]:
        changes: list[Change] = []
        deeds = [self._publish, self._publish, self._settle, self._spill, self._put, self._log]
        for _ in range(self._chance.randrange(1, 6)):
            changes += self._chance.choice(deeds)()
        return changes

    def _publish(self) -> list[Change]:
        self._number += 1
        self._waiting.append(self._number)
        return [Stored(message_with(self._number, bytes(500))), Enqueued(1, self._number, self._number, 0)]

    def _settle(self) -> list[Change]:
        if not self._waiting:
            return []
        number = self._waiting.pop(self._chance.randrange(len(self._waiting)))
        return [Dequeued(number), Discarded(number)]

    def _spill(self) -> list[Change]:
        self._number += 1
        self._spilled.append(self._number)
        changes: list[Change] = [Stored(message_with(self._number), is_spilled=True)]
        if len(self._spilled) > 5:
            changes.append(Discarded(self._spilled.pop(0), is_spilled=True))
        return changes

    def _put(self) -> list[Change]:
        name = str(self._chance.randrange(20))
        if self._chance.random() < 0.3:
            return [Removed("vhost", (name,))]
        return [Put(vhost_record(name, str(self._number)))]

    def _log(self) -> list[Change]:
        changes: list[Change] = []
        for _ in range(self._chance.randrange(20)):
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
        """The ids of the contents of this run."""
        return self._spilled


def test_a_store_that_is_compacted_repeatedly_keeps_its_content(place: LmdbPlace) -> None:
    store, heard, told = opened(place)
    model, life = MemoryStore(), Life()
    begin: list[Change] = [Put(queue_record(1)), Put(queue_record(STREAM))]
    lsn = store.append(list(begin))
    model.append(begin)
    for _ in range(4):
        assert store.compact()
        told.clear()
        while not (told and told[-1].is_over):
            changes = life.step()
            lsn = store.append(changes)
            model.append(changes)
            durable(place, heard, lsn)
        assert told[-1].state == "done", told[-1]
        assert store.messages(life.spilled) == model.messages(life.spilled), "what was spilled in this run is gone"
    model.commit()
    store.close()
    store, _, _ = opened(place)
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
    store, heard, told = opened(place)
    drained(place, store, heard)
    before = store.usage
    assert before.free_bytes > before.file_bytes / 2
    assert store.compact()
    assert not store.compact(), "two at once"
    end = over(place, told)
    assert [progress.state for progress in told] == ["copying", "catching up", "done"]
    assert end.before == before.file_bytes
    assert end.after == (place.path / "data.mdb").stat().st_size < before.file_bytes / 4
    assert store.usage.free_bytes < before.free_bytes / 10
    assert store.compact(), "another one may follow"
    assert over(place, told[3:] or told).state == "done"


def test_compaction_fails_while_the_store_is_too_busy(place: LmdbPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "MOST_REMEMBERED", 1000)
    store, heard, told = opened(place)
    drained(place, store, heard)
    assert store.compact()
    lsn, number = 2, 3000
    while not (told and told[-1].is_over):
        number += 1
        lsn = store.append(publishing(number, number, 2000))
        durable(place, heard, lsn)
    assert (told[-1].state, "were written meanwhile" in told[-1].reason) == ("failed", True)
    assert not (place.path / compaction.DIRECTORY).exists()
    store.append(publishing(number + 1, number + 1))
    place.pump(lambda: heard.watermark > lsn)


def test_compaction_does_not_start_without_free_disk_space(place: LmdbPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "_ROOM", 2**60)
    store, heard, told = opened(place)
    drained(place, store, heard)
    assert store.compact()
    assert "bytes of free disk space are needed" in over(place, told).reason


def test_a_failed_copy_leaves_the_store_unchanged(place: LmdbPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction.sys, "executable", "/bin/false")
    store, heard, told = opened(place)
    drained(place, store, heard)
    assert store.compact()
    assert over(place, told).reason == "the copy ended with 1"
    store.append(publishing(4000, 4000))
    place.pump(lambda: heard.watermark >= 3)
    assert store.messages([4000]) != [None]


def test_a_store_that_closes_does_not_wait_for_a_compaction(place: LmdbPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction.sys, "executable", _sleeper(place))
    store, heard, _ = opened(place)
    drained(place, store, heard)
    assert store.compact()
    place.pump(lambda: store.compaction is not None and store.compaction.state == "copying")
    began = time.monotonic()
    store.close()
    assert time.monotonic() - began < PATIENCE_S / 4
    assert not (place.path / compaction.DIRECTORY).exists()
    store, _, _ = opened(place)
    assert len([each for each in store.recover() if isinstance(each, Enqueued)]) == 100


def _sleeper(place: LmdbPlace) -> str:
    program = place.path.parent / "sleeper"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o700)
    return str(program)
