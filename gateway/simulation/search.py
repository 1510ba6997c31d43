"""A search over many seeds, in several processes."""

import gc
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from types import FrameType
from typing import Final

from gateway.simulation.findings import Finding
from gateway.simulation.run import RunOutcome, run_seed

#: The processor time after which a run counts as endless, in seconds; usual ones take a tenth of a second.
_LONGEST_S: Final = 60.0


class _Endless(BaseException):
    """A run took too long. No code of the broker may catch this."""


def search(seeds: Iterable[int], jobs: int) -> Iterator[RunOutcome]:
    """Yield the outcome of each seed, in their order. With one job they run in this process."""
    _prepare()
    if jobs == 1:
        yield from map(run_bounded, seeds)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as processes:
        yield from processes.map(run_bounded, seeds, chunksize=8)


def _prepare() -> None:
    """Load every module by a run, and take all objects so far out of collections and counts of objects.

    Each run counts its living objects twice. With those of the modules, that takes a third of its time.
    """
    run_seed(0)
    gc.collect()
    gc.freeze()


def run_bounded(seed: int) -> RunOutcome:
    """Run a seed; a run that does not end is a finding."""

    def end(number: int, frame: FrameType | None) -> None:
        raise _Endless

    former = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, _LONGEST_S)
    try:
        return run_seed(seed)
    except _Endless:
        finding = Finding(0.0, "a run ends", f"it takes more than {_LONGEST_S:g} s")
        return RunOutcome(seed, [finding], 0, 0, 0.0, [])
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)
