"""The results of a benchmark."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from benchmarks.load.backlog import Backlog
from benchmarks.load.figure import Figure
from benchmarks.load.idle import IdleMemory
from benchmarks.load.measurement import Measurement
from benchmarks.load.workloads import Workload


@dataclass(slots=True)
class Results:
    """All results: by peer name, ``idle`` by protocol and peer name, ``figures`` by workload; filled during the run."""

    products: dict[str, str] = field(default_factory=dict)
    runs: dict[tuple[Workload, str], list[Measurement]] = field(default_factory=dict)
    idle: dict[tuple[str, str], IdleMemory] = field(default_factory=dict)
    backlogs: dict[str, Backlog] = field(default_factory=dict)
    figures: dict[str, Sequence[Figure]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def median(self, workload: Workload, peer: str) -> Measurement | None:
        """Return the median run by the workload's measure; None if there is none."""
        runs = sorted(self.runs.get((workload, peer), []), key=lambda run: figure_of_merit(workload, run))
        return runs[len(runs) // 2] if runs else None

    def ratio(self, dividend: Workload, divisor: Workload, peer: str) -> float:
        """Return the median ratio of broker CPU per message, of pairs of runs.

        The runs of a pair are adjacent in time, so variations of the machine affect both.
        """
        pairs = zip(self.runs[dividend, peer], self.runs[divisor, peer], strict=False)
        return median(run.broker_us / other.broker_us for run, other in pairs)


def figure_of_merit(workload: Workload, run: Measurement) -> float:
    """Return the compared figure, lower is better: CPU per message for streams, the median time for round trips."""
    round_trip = run.delivery or run.confirm
    return round_trip.p50_ms if workload.measure.is_of_time and round_trip else run.broker_us
