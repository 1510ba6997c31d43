"""Plays the plan of a regression: of the store alone, or of a whole broker."""

from tests.simulation.regressions.store_plan import PLANS, broken_promises, plan_of


def broken_by(name: str) -> list[str]:
    """Return the promises that the plan breaks."""
    if name.startswith("store-"):
        return broken_promises(plan_of(name))
    from gateway.simulation.run import run_seed  # imported here because plans of the store do not need it
    from gateway.simulation.stored_plan import StoredPlan

    stored = StoredPlan(PLANS / f"{name}.json")
    return [str(finding) for finding in run_seed(stored.seed, plan_for=stored.plan).findings]
