"""Runs of the simulator: they replay exactly, and what they find is reported."""

import pytest

from gateway.simulation.run import run_seed

#: With a plugin that answers nonsense, and with a memory alarm, when these seeds were chosen.
REPLAYED = (5, 720_010, 720_077)

#: Enough seeds that each kind of program and fault takes part.
SEEDS = range(20)


@pytest.mark.parametrize("seed", REPLAYED)
def test_a_seed_replays_exactly(seed: int) -> None:
    """The second run has no leftovers of the first one: each address, duration and count in its log is simulated."""
    first, second = (run_seed(seed, traces=True) for _ in range(2))
    assert len(first.lines) > 20
    assert first.lines == second.lines
    assert first.events == second.events


def test_seeds_find_no_broken_promise() -> None:
    found = {seed: [str(each) for each in outcome.findings] for seed in SEEDS if (outcome := run_seed(seed)).findings}
    assert not found


def test_a_run_may_leave_items_of_its_plan_out() -> None:
    whole = run_seed(5, traces=True)
    part = run_seed(5, {0}, traces=True)
    assert part.size == whole.size > 1
    assert part.events < whole.events
