"""The comparison of two checkouts: which workloads are reported as slower."""

from collections.abc import Sequence

import pytest

from benchmarks.load.measurement import Measurement, Stopwatch
from benchmarks.load.results import Results
from benchmarks.load.versions import AFTER, BEFORE, rows
from benchmarks.load.workloads import Workload

WORKLOAD = Workload("fanout", body_bytes=100, window=10, required=0.0)


def results(before_us: Sequence[float], after_us: Sequence[float]) -> Results:
    """Return runs of one message each, with these CPU times."""

    def runs(times_us: Sequence[float]) -> list[Measurement]:
        return [Measurement(1, Stopwatch(broker_cpu_s=us / 1e6), None, None) for us in times_us]

    return Results(runs={(WORKLOAD, BEFORE): runs(before_us), (WORKLOAD, AFTER): runs(after_us)})


@pytest.mark.parametrize(
    ("before_us", "after_us", "verdict"),
    [
        pytest.param([1.0, 1.0, 1.0], [0.5, 0.5, 0.5], "yes", id="faster"),
        pytest.param([1.0, 1.0, 1.0], [1.02, 1.02, 1.02], "yes", id="within 3 %"),
        pytest.param([1.0, 1.0, 1.0], [1.05, 1.05, 1.05], "NO", id="slower"),
        pytest.param([1.0, 1.0, 1.0], [1.2, 1.2, 1.01], "yes", id="only disturbed runs are slower"),
        pytest.param([1.0, 2.0, 3.0], [1.1, 2.0, 3.0], "yes", id="the machine became slower meanwhile"),
    ],
)
def test_a_workload_is_slower_if_the_median_and_the_least_time_are(
    before_us: Sequence[float], after_us: Sequence[float], verdict: str
) -> None:
    _, row = rows(results(before_us, after_us), [WORKLOAD])
    assert row[-1] == verdict


def test_a_workload_that_one_version_could_not_run_has_no_row() -> None:
    assert len(list(rows(results([], [1.0]), [WORKLOAD]))) == 1
