"""The limits of a soak: growth, loss, failures, waits and leftovers. Each limit can fail."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarks.soak.ledger import Ledger, Miscounted
from benchmarks.soak.probes import Wait, summary
from benchmarks.soak.sampling import COUNTS, Sample, header, line
from benchmarks.soak.verdict import findings, slope_per_hour

HOUR = 3600.0

REST = Sample(
    second=0.0,
    resident=80.0,
    in_use=55.0,
    cpu_percent=10.0,
    files=30,
    threads=4,
    disk=1.0,
    turns_p99=2.0,
    turn_longest=9.0,
    turn_longest_cause="connection a",
    turn_longest_recent=9.0,
    wait_p99=2.0,
    wait_longest=9.0,
    wait_longest_own=5.0,
    **dict.fromkeys(COUNTS, 3),
    confirmed=1000,
    arrived=1000,
    failures=0,
)


def hours(change: Callable[[Sample, float], Sample] = lambda sample, hour: sample) -> list[Sample]:
    """Return two hours of samples, every 10 s; ``change`` adjusts each, given the hours since the start."""
    seconds = [10.0 * number for number in range(1, 721)]
    return [change(replace(REST, second=second), second / HOUR) for second in seconds]


def unmet(samples: list[Sample], after: Sample = REST, failures: tuple[str, ...] = ()) -> list[str]:
    return [finding.name for finding in findings(REST, samples, after, failures) if not finding.is_met]


def test_a_stable_broker_meets_all_limits() -> None:
    assert unmet(hours()) == []


@pytest.mark.parametrize(
    ("field", "per_hour", "told"),
    [
        ("in_use", 3.0, "memory in use: rise an hour"),
        ("resident", 5.0, "resident memory: rise an hour"),
        ("files", 4.0, "open files: rise an hour"),
        ("threads", 1.0, "threads: rise an hour"),
        ("disk", 40.0, "data directory: rise an hour"),
    ],
)
def test_a_rising_figure_is_reported(field: str, per_hour: float, told: str) -> None:
    rising = hours(lambda sample, hour: replace(sample, **{field: getattr(sample, field) + per_hour * hour}))
    assert unmet(rising) == [told]


def test_growth_during_warm_up_is_ignored() -> None:
    assert unmet(hours(lambda sample, hour: replace(sample, in_use=55.0 + min(hour, 1 / 6) * 60))) == []


def test_single_outliers_are_not_growth() -> None:
    samples = hours()
    samples[-20:] = [replace(sample, in_use=500.0) for sample in samples[-20:]]
    assert slope_per_hour(samples, lambda sample: sample.in_use) == 0.0


def test_too_few_samples_prove_nothing() -> None:
    assert "memory in use: rise an hour" in unmet(hours()[:3])


def test_a_lost_message_is_reported() -> None:
    assert unmet(hours(), replace(REST, arrived=999)) == ["confirmed messages lost"]


def test_a_failed_round_is_reported() -> None:
    assert unmet(hours(), failures=("queues: Miscounted",)) == ["rounds that failed"]


def test_a_long_wait_is_reported_unless_it_was_for_a_processor() -> None:
    samples = hours()
    assert unmet([*samples, replace(samples[-1], wait_longest=250.0, wait_longest_own=10.0)]) == []
    late = [*samples, replace(samples[-1], wait_longest=250.0, wait_longest_own=120.0)]
    assert unmet(late) == ["longest wait of a probe client"]


@pytest.mark.parametrize("name", COUNTS)
def test_leftovers_are_reported(name: str) -> None:
    assert unmet(hours(), replace(REST, **{name: 4})) == ["left behind at the end"]


def test_waits_are_summarised_with_and_without_those_for_a_processor() -> None:
    waits = [Wait(120.0, 115.0), *[Wait(2.0, 0.0)] * 98, Wait(8.0, 0.0)]
    assert summary(waits) == {"count": 100, "p99": 120.0, "longest": 120.0, "longest_own": 8.0}
    assert summary([]) == {"count": 0, "p99": 0.0, "longest": 0.0, "longest_own": 0.0}


@pytest.mark.parametrize(
    ("came", "told", "arrived"),
    [
        ([b"1"], "1 of 2 missing", 1),
        ([b"1", b"2", b"3"], "1 unexpected", 2),
        ([b"1", b"2", b"2"], "1 repeated", 2),
    ],
    ids=["lost", "strange", "doubled"],
)
def test_the_ledger_reports_missing_and_unexpected_messages(came: list[bytes], told: str, arrived: int) -> None:
    ledger = Ledger()
    with pytest.raises(Miscounted, match=told):
        ledger.settle("queues", [b"1", b"2"], came)
    assert (ledger.all_confirmed, ledger.all_arrived) == (2, arrived)


def test_the_ledger_counts_matches_in_any_order() -> None:
    ledger = Ledger()
    ledger.settle("queues", [b"1", b"2"], [b"2", b"1"])
    ledger.ended("queues")
    assert (ledger.all_confirmed, ledger.all_arrived, ledger.rounds["queues"], ledger.failures) == (2, 2, 1, [])


def test_a_line_of_the_file_has_a_value_for_each_name() -> None:
    named = dict(zip(header().split(","), line(REST).split(","), strict=True))
    assert named["in_use"] == "55.0"
    assert named["queues"] == "3"
