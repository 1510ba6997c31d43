"""The progress output of a job."""

import io

from gateway_spark.jobs.progress import ProgressPrinter


def test_a_long_step_writes_a_line_at_each_interval() -> None:
    out = io.StringIO()
    progress = ProgressPrinter(out, lambda: 7.0)
    intervals = iter([False, False, False, True])
    states = iter(["Spark is starting", "", "3 of 9 tasks done"])
    with progress.waiting(lambda: next(states), lambda: next(intervals)):
        pass
    assert out.getvalue().splitlines() == ["    0.0 s  ... Spark is starting", "    0.0 s  ... 3 of 9 tasks done"]


def test_a_reminder_is_written_after_seconds_without_a_line() -> None:
    out = io.StringIO()
    times = iter([0.0, 4.0, 5.0, 5.0, 5.0, 9.0, 10.0, 10.0, 10.0])  # a line asks for the time twice
    progress = ProgressPrinter(out, lambda: next(times))
    for _ in range(4):
        progress.remind("busy")
    assert out.getvalue().splitlines() == ["    5.0 s  ... busy", "   10.0 s  ... busy"]


def test_a_short_step_writes_nothing() -> None:
    out = io.StringIO()
    with ProgressPrinter(out).waiting(lambda: "busy"):
        pass
    assert out.getvalue() == ""


def test_a_warning_is_written_once() -> None:
    out = io.StringIO()
    progress = ProgressPrinter(out)
    for line in ("a", "b", "a"):
        progress.warn(line)
    assert [line.partition("WARNING: ")[2] for line in out.getvalue().splitlines()] == ["a", "b"]
