"""Garbage collection in bounded pieces: old objects are frozen, young cycles are freed."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from gateway.node.garbage_collector import FULL_INTERVAL_S, IDLE_INTERVAL_S, GarbageCollector


class Node:
    """One object of a cycle."""

    def __init__(self) -> None:
        self.me = self


class Time:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def collector(time: Time) -> Iterator[GarbageCollector]:
    thresholds = gc.get_threshold()
    collector = GarbageCollector(time)
    collector.start()
    yield collector
    collector.stop()
    gc.set_threshold(*thresholds)


def grow(objects: int) -> list[list[int]]:
    return [[number] for number in range(objects)]


def test_no_collection_traverses_more_than_a_bounded_number_of_objects(collector: GarbageCollector) -> None:
    kept = []
    full: list[int] = []
    gc.callbacks.append(lambda phase, info: full.append(len(gc.get_objects(2))) if info["generation"] == 2 else None)
    try:
        for _ in range(30):
            kept.append(grow(50_000))
            collector.tick()
    finally:
        gc.callbacks.pop()
    assert max(full) <= 200_000
    assert len(gc.get_objects()) < 250_000
    assert gc.get_freeze_count() > 1_000_000
    assert collector.longest_ms > 0


def test_collections_between_ticks_traverse_few_objects(collector: GarbageCollector) -> None:
    traversed: list[int] = []

    def watch(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            traversed.append(sum(len(gc.get_objects(generation)) for generation in range(info["generation"] + 1)))

    kept = []
    gc.collect()
    gc.freeze()
    gc.callbacks.append(watch)
    try:
        for _ in range(100):
            kept.append(grow(2_500))
            collector.tick()
    finally:
        gc.callbacks.remove(watch)
    assert 15_000 <= max(traversed) <= 40_000


def test_young_cycles_are_freed(collector: GarbageCollector) -> None:
    references = []
    kept = []
    for _ in range(8):
        references.append(weakref.ref(Node()))
        kept.append(grow(20_000))
        collector.tick()
    assert [reference() for reference in references[:4]] == [None] * 4


def test_a_frozen_cycle_is_freed_by_a_full_collection(collector: GarbageCollector, time: Time) -> None:
    node = Node()
    reference = weakref.ref(node)
    gc.freeze()
    del node
    gc.collect()
    assert reference() is not None
    time.now_s += FULL_INTERVAL_S
    assert collector.collect_all()
    assert reference() is None
    assert collector.full_collections == 1


def test_full_collections_run_at_most_once_a_minute(collector: GarbageCollector, time: Time) -> None:
    time.now_s += FULL_INTERVAL_S
    assert collector.collect_all()
    assert not collector.collect_all()
    time.now_s += FULL_INTERVAL_S
    assert collector.collect_all()


def test_without_clients_everything_is_collected_after_an_interval(collector: GarbageCollector, time: Time) -> None:
    reference = weakref.ref(Node())
    gc.freeze()
    time.now_s += IDLE_INTERVAL_S / 2
    collector.tick(is_idle=True)
    assert collector.full_collections == 0
    time.now_s += IDLE_INTERVAL_S / 2
    collector.tick(is_idle=True)
    assert collector.full_collections == 1
    assert reference() is None
    collector.tick(is_idle=True)
    assert collector.full_collections == 1


def test_a_broker_with_clients_is_never_paused_by_a_timed_collection(collector: GarbageCollector, time: Time) -> None:
    for _ in range(10):
        time.now_s += IDLE_INTERVAL_S
        collector.tick()
    assert collector.full_collections == 0
