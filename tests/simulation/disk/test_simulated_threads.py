"""Simulated threads: order, waiting, timeouts, deadlocks and kills."""

from __future__ import annotations

from queue import Empty

import pytest

from gateway.simulation.disk import ProcessKilled, SimulatedThreads
from tests.simulation.disk.small_world import SmallWorld


@pytest.fixture
def world() -> SmallWorld:
    return SmallWorld(1)


@pytest.fixture
def threads(world: SmallWorld) -> SimulatedThreads:
    return world.new_threads()


def test_the_seed_decides_the_order_of_threads() -> None:
    def order(seed: int) -> list[str]:
        world, steps = SmallWorld(seed), []
        threads = world.new_threads()

        def run(name: str) -> None:
            for _ in range(5):
                threads.pause()
                steps.append(name)

        for name in "abc":
            threads.start(lambda name=name: run(name), name)
        world.run_for(1)
        assert len(steps) == 15
        return steps

    orders = [order(seed) for seed in range(10)]
    assert [order(seed) for seed in range(10)] == orders
    assert len({tuple(each) for each in orders}) == 10


def test_a_queue_gives_items_in_order_and_ends_a_wait(world: SmallWorld, threads: SimulatedThreads) -> None:
    queue, found = threads.queue(), []
    threads.start(lambda: found.extend(queue.get() for _ in range(3)), "reader")
    world.run_for(1)
    for item in "abc":
        queue.put(item)
    world.run_for(1)
    assert found == ["a", "b", "c"]


def test_a_wait_ends_after_its_timeout_in_virtual_time(world: SmallWorld, threads: SimulatedThreads) -> None:
    ended: list[float] = []
    queue, event = threads.queue(), threads.event()

    def run() -> None:
        with pytest.raises(Empty):
            queue.get(timeout=2)
        ended.append(world.now_s)
        assert not event.wait(3)
        ended.append(world.now_s)

    threads.start(run, "waiting")
    world.run_for(10)
    assert [round(each, 2) for each in ended] == [2, 5]
    assert threads.names == []


def test_an_event_ends_all_waits(world: SmallWorld, threads: SimulatedThreads) -> None:
    event, found = threads.event(), []
    for name in "ab":
        threads.start(lambda name=name: found.append((name, event.wait())), name)
    world.run_for(1)
    event.set()
    world.run_for(1)
    assert sorted(found) == [("a", True), ("b", True)]
    event.clear()
    assert not event.wait(0)


def test_a_lock_is_held_by_one_thread(world: SmallWorld, threads: SimulatedThreads) -> None:
    lock, inside = threads.lock(), []

    def run() -> None:
        with lock:
            inside.append(1)
            threads.pause()
            assert sum(inside) == 1
            inside.append(-1)

    for name in "abc":
        threads.start(run, name)
    world.run_for(1)
    assert len(inside) == 6


def test_the_kernel_waits_for_a_thread_while_others_run(world: SmallWorld, threads: SimulatedThreads) -> None:
    queue, found = threads.queue(), []
    reader = threads.start(lambda: found.append(queue.get()), "reader")
    threads.start(lambda: (threads.pause(5), queue.put("item")), "writer")
    reader.join()
    assert found == ["item"]
    assert world.now_s == 0


def test_a_deadlock_is_reported_with_the_threads(threads: SimulatedThreads) -> None:
    thread = threads.start(lambda: threads.queue().get(), "waiting")
    with pytest.raises(RuntimeError, match="the kernel waits for threads that all wait: waiting"):
        thread.join()


def test_an_error_of_a_thread_reaches_the_world(world: SmallWorld, threads: SimulatedThreads) -> None:
    threads.start(lambda: 1 // 0, "failing")
    with pytest.raises(ZeroDivisionError):
        world.run_for(1)
    assert threads.names == []


def test_a_killed_thread_ends_where_it_is(world: SmallWorld, threads: SimulatedThreads) -> None:
    queue, found = threads.queue(), []
    thread = threads.start(lambda: found.append(queue.get()), "reader")
    world.run_for(1)
    threads.kill()
    queue.put("item")
    world.run_for(1)
    assert found == []
    with pytest.raises(ProcessKilled):
        thread.join()
