"""The time that the event loop waits for a processor, and faults of plugins on a busy machine."""

from pathlib import Path

import pytest

from gateway.kernel.plugin_times import Overrun
from gateway.node.processor_waits import ProcessorWaits
from gateway.testing import MemoryBroker


@pytest.fixture
def schedule(tmp_path: Path) -> Path:
    path = tmp_path / "schedstat"
    path.write_text("500 1000000000 7")
    return path


def test_waits_of_the_last_two_intervals_count(schedule: Path) -> None:
    waits = ProcessorWaits(schedule)
    schedule.write_text("500 1300000000 9")
    waits.sample()
    schedule.write_text("500 1700000000 9")
    assert waits.recent_s() == pytest.approx(0.7)
    waits.sample()
    assert waits.recent_s() == pytest.approx(0.4)
    waits.sample()
    assert waits.recent_s() == 0


def test_this_thread_has_such_a_file_and_its_waits_never_decrease() -> None:
    waits = ProcessorWaits()
    before_s = waits.recent_s()
    sum(range(1_000_000))
    assert waits.recent_s() >= before_s >= 0


@pytest.mark.parametrize("content", ["", "500", "500 many 7"])
def test_a_system_without_such_times_counts_as_idle(schedule: Path, content: str) -> None:
    schedule.write_text(content)
    assert ProcessorWaits(schedule).recent_s() == 0
    assert ProcessorWaits(schedule.parent / "missing").recent_s() == 0


@pytest.mark.parametrize(("waited_s", "count"), [(0.0, 1), (0.15, 1), (0.25, 0)])
def test_a_call_that_is_long_because_the_machine_is_busy_is_no_fault(waited_s: float, count: int) -> None:
    faults = MemoryBroker().kernel.faults
    faults.processor_wait_s = lambda: waited_s
    faults.contain("route", Overrun(0.3))
    assert faults.total == count


def test_an_exception_on_a_busy_machine_is_a_fault() -> None:
    faults = MemoryBroker().kernel.faults
    faults.processor_wait_s = lambda: 10.0
    faults.contain("route", RuntimeError("no good"))
    assert faults.total == 1
