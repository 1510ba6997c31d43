"""The alarms of memory and disk, and the return of freed memory to the system."""

from pathlib import Path

import pytest

from gateway.kernel.alarms import Alarms, Resource
from gateway.net import watermarks
from gateway.net.watermarks import SHORT_INTERVAL_S, Relief, Watermarks

MIB = 2**20
LIMIT = 1000 * MIB


class Memory:
    """Simulated memory, of which a part is freed by ``trim_heap``; a call takes ``takes_s``."""

    def __init__(self, used: int) -> None:
        self.used = used
        self.free = 0
        self.now_s = 0.0
        self.takes_s = 0.0
        self.tries = 0

    def trim_heap(self) -> None:
        self.tries += 1
        self.used -= self.free
        self.free = 0
        self.now_s += self.takes_s

    def relief(self) -> Relief:
        return Relief(lambda: self.now_s, self.trim_heap, lambda: self.used)


def test_freed_memory_is_returned_and_not_counted() -> None:
    memory = Memory(900 * MIB)
    memory.free = 600 * MIB
    assert memory.relief().after(memory.used, LIMIT) == 300 * MIB


def test_memory_is_returned_less_and_less_often_while_that_does_not_help() -> None:
    memory = Memory(900 * MIB)
    relief = memory.relief()
    tries = []
    for _ in range(100):
        relief.after(memory.used, LIMIT)
        tries.append(memory.tries)
        memory.now_s += SHORT_INTERVAL_S
    assert tries[19] <= 5
    assert memory.tries <= 12
    memory.free = 500 * MIB
    before = memory.tries
    for _ in range(40):
        relief.after(memory.used, LIMIT)
        memory.now_s += SHORT_INTERVAL_S
    assert memory.used == 400 * MIB
    assert memory.tries > before


def test_memory_is_returned_twice_a_second_while_the_alarm_is_set() -> None:
    memory = Memory(2 * LIMIT)
    relief = memory.relief()
    while memory.now_s < 10:
        relief.after(memory.used, LIMIT)
        memory.now_s += SHORT_INTERVAL_S
    assert 20 <= memory.tries <= 24


def test_returning_memory_takes_a_small_share_of_the_time() -> None:
    memory = Memory(2 * LIMIT)
    memory.takes_s = 0.2
    relief = memory.relief()
    for _ in range(100):
        relief.after(memory.used, LIMIT)
        memory.now_s += SHORT_INTERVAL_S
    assert memory.tries * memory.takes_s < 0.06 * memory.now_s


def test_memory_freed_over_seconds_is_returned_in_small_parts() -> None:
    memory = Memory(900 * MIB)
    relief = memory.relief()
    returned = []
    for _ in range(20):
        memory.free += 28 * MIB
        memory.takes_s = memory.free / MIB * 0.0003
        before = memory.used
        relief.after(memory.used, LIMIT)
        returned.append(before - memory.used)
        memory.now_s += SHORT_INTERVAL_S
    assert sum(returned) >= 18 * 28 * MIB
    assert max(returned) <= 2 * 28 * MIB, "17 ms"


def test_garbage_is_collected_before_the_alarm_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used = [1200, 1200, 1200, 300]
    monkeypatch.setattr(watermarks, "memory_used", lambda: used.pop(0))
    alarms, asked = Alarms(), []
    marks = Watermarks(alarms, tmp_path, 1000, 0, lambda: bool(asked.append(1)) or True)
    assert marks.check() == 300
    assert asked == [1]
    assert Resource.MEMORY not in alarms.standing


def test_the_alarm_is_raised_when_nothing_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watermarks, "memory_used", lambda: 1200)
    alarms = Alarms()
    Watermarks(alarms, tmp_path, 1000, 0, lambda: True).check()
    assert Resource.MEMORY in alarms.standing
