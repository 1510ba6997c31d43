"""Jobs that run until they are interrupted."""

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gateway_spark.jobs import presence, rollup
from gateway_spark.jobs.interruption import noted_interrupts
from gateway_spark.jobs.running import main
from gateway_spark.reports.page import ResultTables
from tests.pipeline.archives import write_file
from tests.pipeline.readings_broker import QUEUE, broker_with
from tests.waiting import wait_until

TIMEOUT_S = 240.0


def in_background(steps: Callable[[], None]) -> threading.Thread:
    """Run some steps during a job, and then interrupt it, even if a step failed."""

    def take() -> None:
        try:
            steps()
        finally:
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=take)
    thread.start()
    return thread


def windows_in(out: Path) -> int:
    try:
        windows: int = json.loads((out / "run.json").read_text())["figures"]["windows"]
    except FileNotFoundError:
        return 0
    return windows


def wait_for_windows(out: Path, count: int) -> None:
    wait_until(lambda: windows_in(out) >= count, f"there are no {count} windows", timeout_s=TIMEOUT_S)


def test_a_continuous_roll_up_follows_its_stream(spark: SparkSession, tmp_path: Path) -> None:
    bodies = [json.dumps({"t": hour, "at": f"2024-01-01T{hour:02}:00:00Z"}).encode() for hour in range(6)]
    with broker_with(bodies) as broker:
        broker.declare(QUEUE, 0, 2)

        def publish_more() -> None:
            wait_for_windows(tmp_path, 2)
            broker.declare(QUEUE, 0, 6)
            wait_for_windows(tmp_path, 6)

        thread = in_background(publish_more)
        source = ["--queue", QUEUE, "--url", broker.options()["url"], "--field", "$.t", "--time", "$.at"]
        code = main(rollup.JOB, [*source, "--out", str(tmp_path), "--continuous", "--every", "200ms"])
        thread.join()
    assert code == 130
    assert sorted(ResultTables(tmp_path)["windows"]["avg"]) == [0, 1, 2, 3, 4, 5]
    assert (tmp_path / "report.html").is_file()
    assert spark.streams.active == []


def test_a_job_without_a_stream_runs_again_after_a_pause(spark: SparkSession, tmp_path: Path) -> None:
    pauses: list[float] = []
    seen: list[int] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        seen.append(int(ResultTables(tmp_path / "out")["devices"]["messages"].sum()))
        write_file(tmp_path / "archive", [{}] * 5, first=100)
        if len(pauses) == 2:
            raise KeyboardInterrupt

    write_file(tmp_path / "archive", [{}] * 10)
    arguments = ["--archive", str(tmp_path / "archive"), "--out", str(tmp_path / "out")]
    assert main(presence.JOB, [*arguments, "--continuous", "--every", "5m"], pause) == 130
    assert pauses == [300.0, 300.0]
    assert seen == [10, 15]


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def interrupted(times: int) -> list[int]:
    """Interrupt a block this many times; return which interrupts it survived."""
    survived: list[int] = []

    def block() -> None:
        with noted_interrupts():
            for number in range(times):
                interrupt()
                survived.append(number)

    with pytest.raises(KeyboardInterrupt):
        block()
    return survived


def test_an_interrupt_is_raised_at_the_end_of_the_block() -> None:
    earlier = signal.getsignal(signal.SIGINT)
    assert interrupted(1) == [0]
    assert signal.getsignal(signal.SIGINT) == earlier


def test_a_second_interrupt_is_raised_immediately() -> None:
    assert interrupted(2) == [0]


def test_without_an_interrupt_nothing_is_raised() -> None:
    with noted_interrupts() as interruption:
        pass
    assert not interruption.is_asked
