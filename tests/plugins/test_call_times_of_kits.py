"""The time limits of the kits of gateway.testing: a call that blocks breaks them, a busy machine does not."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from gateway.kernel.plugin_times import CALL_LIMIT_S
from gateway.kernel.vhosts.metric_source import PluginMetric
from gateway.testing import check_metric_source
from gateway.testing.call_timer import CallTimer, is_slower, processor_wait_s

MS = 1e-3


def test_waits_for_a_processor_are_not_counted() -> None:
    times, waits = iter([10.0, 10.9]), iter([3.0, 3.8])
    timer = CallTimer(lambda: next(times), lambda: next(waits))
    assert timer.seconds == pytest.approx(0.1)


def test_a_wait_is_at_most_the_time_that_passed() -> None:
    times, waits = iter([10.0, 10.1]), iter([3.0, 3.2])
    assert CallTimer(lambda: next(times), lambda: next(waits)).seconds == 0


@pytest.fixture
def busy() -> Iterator[None]:
    """Share one processor with a process that always runs."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    rival = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        rival.kill()
        rival.wait()
        os.sched_setaffinity(0, allowed)


def test_a_thread_without_a_processor_waits(busy: None) -> None:
    starts_s, before_s = time.perf_counter(), processor_wait_s()
    timer = CallTimer()
    while processor_wait_s() - before_s < 20 * MS:
        assert time.perf_counter() - starts_s < 40
    assert timer.seconds < time.perf_counter() - starts_s - 15 * MS


def test_a_call_that_was_slow_once_is_not_slow() -> None:
    pauses_s = iter([0.0])
    assert not is_slower(lambda: time.sleep(next(pauses_s)), 5.0, 50 * MS)


def test_a_call_that_blocks_is_slow() -> None:
    assert is_slower(lambda: time.sleep(50 * MS), 50 * MS, 4 * MS)


class Pausing:
    """A source of metrics that blocks in its first calls."""

    def __init__(self, pauses: int) -> None:
        self.pauses = pauses

    def metrics(self) -> list[PluginMetric]:
        if self.pauses:
            self.pauses -= 1
            time.sleep(1.1 * CALL_LIMIT_S)
        return []


def test_one_pause_does_not_break_a_contract() -> None:
    check_metric_source(Pausing(1))


def test_a_source_that_always_blocks_breaks_it() -> None:
    with pytest.raises(AssertionError, match=r"metrics\(\) took 1\d\d ms; the limit is 100 ms"):
        check_metric_source(Pausing(100))
