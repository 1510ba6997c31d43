"""Plays the plan of a regression: of the store alone, or of a whole broker."""

from typing import Final

from tests.simulation.regressions.store_plan import PLANS, broken_promises, plan_of

#: Seeds with which the plan of a broker is played: that of the plan and those after it. The plan has its programs and
#: faults; their choices, the network and the disk follow from the seed. So a change of the simulated clients makes
#: another seed show the bug, and not none.
FEW_SEEDS: Final = 10
MANY_SEEDS: Final = 400


def broken_by(name: str, seeds: int = FEW_SEEDS) -> list[str]:
    """Return the promises that the plan breaks, with the first seed that does."""
    if name.startswith("store-"):
        return broken_promises(plan_of(name))
    first = int(plan_of(name)["seed"])
    for seed in range(first, first + seeds):
        if broken := _broken_with(name, seed):
            return broken
    return []


def _broken_with(name: str, seed: int) -> list[str]:
    from gateway.simulation.run import run_seed  # imported here because plans of the store do not need it
    from gateway.simulation.stored_plan import StoredPlan

    stored = StoredPlan(PLANS / f"{name}.json")
    stored.seed = seed
    return [f"seed {seed}: {finding}" for finding in run_seed(seed, plan_for=stored.plan).findings]
