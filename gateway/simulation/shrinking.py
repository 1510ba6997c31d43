"""Shrinking of a failing seed: leave out programs and faults of its plan as long as the same promise is broken."""

from collections.abc import Callable

from gateway.simulation.run import RunOutcome, run_seed


def shrunk(
    seed: int, on_step: Callable[[int], None] = lambda left: None, run: Callable[..., RunOutcome] = run_seed
) -> frozenset[int]:
    """Return the fewest items of a seed's plan with which it still breaks one of its promises.

    ``on_step`` is called with the number of items after each one that was left out. A seed that breaks none keeps all.
    """
    whole = run(seed)
    rules = {finding.rule for finding in whole.findings}
    kept = frozenset(range(whole.size))
    if not rules:
        return kept
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for item in sorted(kept):
            outcome = run(seed, kept - {item})
            if rules & {finding.rule for finding in outcome.findings}:
                kept -= {item}
                is_smaller = True
                on_step(len(kept))
    return kept
