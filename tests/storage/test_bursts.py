"""Bursts: two threads begin them in turns, and neither waits for the other one for long."""

import threading

from gateway_lmdb.bursts import SystemBursts
from tests.waiting import wait_until

#: Far beyond the patience of a thread, for any machine.
_LONG_S = 30.0


def test_a_burst_waits_for_the_one_before_it() -> None:
    bursts = SystemBursts()
    ends: list[str] = []
    first = bursts.begin()

    def second() -> None:
        while not (has_begun := bursts.begin()):  # the other burst may last longer than the patience
            ends.append("impatient")
        ends.append("begun")
        bursts.end(has_begun)

    thread = threading.Thread(target=second)
    thread.start()
    wait_until(lambda: ends.count("impatient") >= 2)
    assert first
    assert "begun" not in ends
    bursts.end(first)
    thread.join(_LONG_S)
    assert ends[-1] == "begun"


def test_a_thread_goes_on_without_its_turn_if_the_other_burst_does_not_end() -> None:
    bursts = SystemBursts()
    held = bursts.begin()
    assert held
    refused = bursts.begin()
    assert not refused
    bursts.end(refused)  # ends nothing
    assert not bursts.begin()
    bursts.end(held)
    again = bursts.begin()
    assert again
    bursts.end(again)


def test_both_threads_make_progress() -> None:
    bursts = SystemBursts()
    counts, stop = {"a": 0, "b": 0}, threading.Event()

    def run(name: str) -> None:
        while not stop.is_set():
            bursts.end(bursts.begin())
            counts[name] += 1

    threads = [threading.Thread(target=run, args=(name,)) for name in counts]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: min(counts.values()) >= 100)
    finally:
        stop.set()
        for thread in threads:
            thread.join(_LONG_S)
    assert not any(thread.is_alive() for thread in threads)
