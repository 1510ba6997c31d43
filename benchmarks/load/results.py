"""What a benchmark has measured so far."""

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
    """Everything measured, by peer name, ``idle`` by protocol and peer name, ``figures`` by duty; filled meanwhile."""

    products: dict[str, str] = field(default_factory=dict)
    runs: dict[tuple[Workload, str], list[Measurement]] = field(default_factory=dict)
    idle: dict[tuple[str, str], IdleMemory] = field(default_factory=dict)
    backlogs: dict[str, Backlog] = field(default_factory=dict)
    figures: dict[str, Sequence[Figure]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def median(self, workload: Workload, peer: str) -> Measurement | None:
        """The run in the middle, by what its workload is about; None when there was none."""
        runs = sorted(self.runs.get((workload, peer), []), key=lambda run: figure_of_merit(workload, run))
        return runs[len(runs) // 2] if runs else None

    def ratio(self, dividend: Workload, divisor: Workload, peer: str) -> float:
        """How many times the one takes the broker CPU a message of the other: the middle of runs in pairs.

        Runs that followed each other saw the machine in the same mood.
        """
        pairs = zip(self.runs[dividend, peer], self.runs[divisor, peer], strict=False)
        return median(run.broker_us / other.broker_us for run, other in pairs)


def figure_of_merit(workload: Workload, run: Measurement) -> float:
    """What is compared, the less the better: CPU a message for streams, the median time for round trips."""
    round_trip = run.delivery or run.confirm
    return round_trip.p50_ms if workload.measure.is_of_time and round_trip else run.broker_us
