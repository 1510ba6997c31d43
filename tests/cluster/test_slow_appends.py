"""A log whose appends are all slow for a while gets another leader, and not again and again. ADR 0025, "Slow disks"."""

from itertools import pairwise

import pytest

from gateway.cluster.queue_log import Claim
from gateway.cluster.slow_appends import FIRST_PAUSE_S, PATIENCE_S, SlowAppends
from gateway.testing.clock import FakeClock
from tests.cluster.scripted_logs import ScriptedLogs
from tests.cluster.test_log_writer import Owner


def moves(appends: SlowAppends, took_s: float, seconds: float, begin_s: float = 0.0) -> list[float]:
    """Return when another leader is asked for, while appends follow each other."""
    found = []
    now_s = begin_s
    while now_s < begin_s + seconds:
        now_s += took_s
        if appends.note(now_s, took_s):
            found.append(now_s - begin_s)
    return found


def test_a_slow_disk_is_noticed_within_five_seconds() -> None:
    found = moves(SlowAppends(), 0.05, 20)
    assert len(found) == 1
    assert PATIENCE_S <= found[0] < 5


def test_very_slow_appends_are_noticed_within_ten_seconds() -> None:
    assert moves(SlowAppends(), 1.9, 12) == [pytest.approx(9.5)]


def test_a_busy_machine_is_no_slow_disk() -> None:
    appends = SlowAppends()
    assert not any(appends.note(at * 0.1, 0.005 if at % 20 == 0 else 0.3) for at in range(1000))


def test_if_all_disks_are_slow_leaders_change_less_and_less() -> None:
    found = moves(SlowAppends(), 0.05, 3600)
    pauses = [later - earlier for earlier, later in pairwise(found)]
    assert pauses == [pytest.approx(FIRST_PAUSE_S * 2**at, rel=0.2) for at in range(len(pauses))]
    assert len(found) <= 8


def test_after_a_move_that_helped_the_next_slow_disk_is_noticed_as_soon() -> None:
    appends = SlowAppends()
    moves(appends, 0.05, 100)
    assert moves(appends, 0.002, 300, 100) == []
    assert moves(appends, 0.05, 20, 400) == [pytest.approx(PATIENCE_S, abs=0.2)]


def test_a_disk_that_is_slow_from_time_to_time_makes_no_leader_change_twice_in_a_pause() -> None:
    appends = SlowAppends()
    found: list[float] = []
    for at in range(20):
        found += [20.0 * at + each for each in moves(appends, 0.05, 6, 20.0 * at)]
        moves(appends, 0.002, 14, 20.0 * at + 6)
    pauses = [later - earlier for earlier, later in pairwise(found)]
    assert found
    assert all(pause >= FIRST_PAUSE_S for pause in pauses)


class SlowLogs(ScriptedLogs):
    """Logs on slow disks."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self._latency_s = 0.06
        self.asked: list[Claim] = []

    def move_leader(self, claim: Claim) -> None:
        self.asked.append(claim)


def test_a_writer_asks_for_another_leader_of_its_log() -> None:
    clock = FakeClock()
    logs = SlowLogs(clock)
    owner = Owner(logs, clock)
    for _ in range(200):
        owner.writer.append(b"x")
        clock.advance(0.05)
    assert logs.asked == [owner.claim]
    assert owner.writer.leader_moves == 1
