"""Runs with small limits on the work of a turn do what very many queues or messages cause otherwise."""

import pytest

from gateway.kernel.routing import router
from gateway.kernel.routing.sliced_fanout import SlicedFanout
from gateway.kernel.vhosts import virtual_host
from gateway.simulation.process.limits import chosen_limits, small_limits
from gateway.simulation.run import run_seed

SEEDS = range(200)


def test_some_runs_have_small_limits_and_others_the_usual_ones() -> None:
    with_limits = [seed for seed in SEEDS if chosen_limits(seed)]
    assert 0.2 * len(SEEDS) < len(with_limits) < 0.6 * len(SEEDS)


def test_a_step_is_not_larger_than_what_a_turn_does_at_once() -> None:
    for limits in filter(None, map(chosen_limits, SEEDS)):
        assert max(limits["_STEP"], limits["_SETTLED_AT_ONCE"]) <= limits["MOST_AT_ONCE"]


def test_the_limits_hold_in_each_module_that_imports_them_and_only_meanwhile() -> None:
    usual = router.MOST_QUEUES  # type: ignore[attr-defined]  # imported there
    with small_limits({"MOST_QUEUES": 7}):
        assert router.MOST_QUEUES == virtual_host.MOST_QUEUES == 7  # type: ignore[attr-defined]
    assert router.MOST_QUEUES == virtual_host.MOST_QUEUES == usual  # type: ignore[attr-defined]


def test_messages_to_few_queues_are_then_offered_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[int] = []  # not the fanouts, whose messages would be left in memory
    original = SlicedFanout.finish

    def finish(self: SlicedFanout) -> None:
        widths.append(0 if self.route is None else len(self.route.queues))
        original(self)

    monkeypatch.setattr(SlicedFanout, "finish", finish)
    seeds = [seed for seed in SEEDS if chosen_limits(seed)][:10]
    assert not [finding for seed in seeds for finding in run_seed(seed).findings]
    assert widths
