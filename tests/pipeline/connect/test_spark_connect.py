"""Jobs on a server of Spark Connect, which has no installation of the pipeline: batches, streams, and mistakes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pandas
import pika
import pytest

from gateway_spark.reports.page import ResultTables
from tests.interop.amqp_clients.pika_client import parameters
from tests.interop.broker import PROJECT
from tests.pipeline.broker_api import call, url_of, wait_for_rows
from tests.pipeline.connect.connect_server import connect_server
from tests.running import Gateway, gateway_in
from tests.waiting import wait_until

TOKEN: Final = "connect-token"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway_in(tmp_path_factory.mktemp("broker"), "archive.segment_age_s=1") as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that requires a token, with it."""
    with connect_server(tmp_path_factory.mktemp("server"), f"spark.connect.authenticate.token={TOKEN}") as url:
        yield f"{url}/;token={TOKEN}"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server whose Python has the pipeline, as streaming jobs need."""
    with connect_server(tmp_path_factory.mktemp("installed"), packages=PROJECT / "pipeline") as url:
        yield url


def command(job: str, master: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "gateway_spark", "run", job, "--master", master, *arguments]


ENVIRONMENT: Final = {**os.environ, "PYTHONPATH": str(PROJECT / "pipeline")}


def run(job: str, master: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a job to its end, in a process of its own: one process has either classic sessions or those of Connect."""
    return subprocess.run(
        command(job, master, *arguments), env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=500
    )


def publish(gateway: Gateway, queue: str, first: int, end: int) -> None:
    with pika.BlockingConnection(parameters(gateway.broker)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(queue, durable=True, arguments={"x-queue-type": "stream"})
        for number in range(first, end):
            body = {"device": f"d{number % 2}", "temp": number, "at": f"2026-01-31T{number % 24:02}:00:00Z"}
            channel.basic_publish("", queue, json.dumps(body).encode())


def windows(directory: Path) -> pandas.DataFrame:
    return pandas.read_parquet(directory / "windows")


def messages_in(directory: Path) -> int:
    """Return the messages in the windows; 0 while the table is not there, as when it is replaced."""
    try:
        return int(windows(directory)["messages"].sum()) if (directory / "run.json").exists() else 0
    except OSError:
        return 0


def rollup(gateway: Gateway, queue: str, *arguments: str) -> list[str]:
    source = ["--url", url_of(gateway), "--queue", queue, "--field", "$.temp", "--by", "$.device"]
    return [*source, "--time", "$.at", "--window", "1d", "--watermark", "2d", *arguments]


def test_a_batch_reads_and_writes_through_the_server(gateway: Gateway, server: str, tmp_path: Path) -> None:
    publish(gateway, "batch", 0, 20)
    done = run("rollup", server, *rollup(gateway, "batch", "--out", str(tmp_path / "out")))
    assert done.returncode == 0, done.stdout + done.stderr
    found = windows(tmp_path / "out").sort_values("device")
    assert list(found["messages"]) == [10, 10]
    assert list(found["max"]) == [18, 19]
    noted = (tmp_path / "out/run.json").read_text()
    assert TOKEN not in noted
    assert json.loads(noted)["options"]["master"] == server.partition("/;")[0]
    published = run(
        "replay", server, "--url", url_of(gateway), "--queue", "batch", "--name", "again", "--to-exchange", "",
        "--to-routing-key", "copy", "--out", str(tmp_path / "replay"), "--unroutable", "drop",
    )  # fmt: skip
    assert published.returncode == 0, published.stdout + published.stderr
    assert "published 20" in published.stdout


def test_latencies_of_a_trace(gateway: Gateway, server: str, tmp_path: Path) -> None:
    call(gateway, "PUT", "vhosts/%2F", {"trace_table": True})
    with pika.BlockingConnection(parameters(gateway.broker)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("traced", durable=True)
        for number in range(10):
            channel.basic_publish("", "traced", b"%d" % number)
        for number in range(10):
            channel.basic_get("traced", auto_ack=number < 8)
    call(gateway, "PUT", "vhosts/%2F", {"trace_table": False})
    trace = gateway.data / "trace"
    wait_for_rows(trace, 10 * 4)  # published, routed, enqueued and delivered
    done = run("latency", server, "--archive", str(trace), "--queue", "traced", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = ResultTables(tmp_path)["latencies"].to_dict("records")
    assert (row["vhost"], row["protocol"], row["queue"], row["deliveries"]) == ("/", "amqp091", "traced", 10)
    assert 0 <= row["to_deliver_p50"] <= row["to_deliver_p99"]
    assert "traced" in (tmp_path / "report.html").read_text()


def test_a_stream_continues_at_its_checkpoint(gateway: Gateway, installed: str, tmp_path: Path) -> None:
    places = ["--out", str(tmp_path / "out"), "--checkpoint", str(tmp_path / "checkpoint")]
    for end in (10, 24):
        publish(gateway, "followed", 0 if end == 10 else 10, end)
        done = run("rollup", installed, *rollup(gateway, "followed", *places))
        assert done.returncode == 0, done.stdout + done.stderr
        assert f": {10 if end == 10 else 14} messages, " in done.stdout, done.stdout
        assert sum(windows(tmp_path / "out")["messages"]) == end
    status = subprocess.run(
        [sys.executable, "-m", "gateway_spark", "status", str(tmp_path / "checkpoint"), "--url", url_of(gateway)],
        env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert "followed" in status.stdout, status.stdout + status.stderr


def test_a_continuous_job_reports_each_batch_and_stops(gateway: Gateway, installed: str, tmp_path: Path) -> None:
    publish(gateway, "growing", 0, 6)
    out = tmp_path / "out"
    arguments = ["--continuous", "--every", "1s", "--out", str(out), "--checkpoint", str(tmp_path / "checkpoint")]
    with (tmp_path / "printed").open("wb") as printed:
        job = subprocess.Popen(
            command("rollup", installed, *rollup(gateway, "growing", *arguments)),
            env=ENVIRONMENT,
            stdout=printed,
            stderr=printed,
        )

    def wait_for_messages(end: int) -> None:
        wait_until(
            lambda: job.poll() is not None or messages_in(out) == end,
            lambda: (tmp_path / "printed").read_text(),
            timeout_s=300,
        )

    try:
        for end in (6, 12):
            if end == 12:
                publish(gateway, "growing", 6, 12)
            wait_for_messages(end)
        job.send_signal(signal.SIGINT)
        assert job.wait(120) == 130, (tmp_path / "printed").read_text()
    finally:
        job.kill()
        job.wait()
    assert "Traceback" not in (tmp_path / "printed").read_text()


def test_mistakes_are_one_line(gateway: Gateway, server: str, tmp_path: Path) -> None:
    place = server.partition("/;")[0]
    publish(gateway, "mistaken", 0, 1)
    wrong = run("rollup", f"{place}/;token=wrong", *rollup(gateway, "mistaken", "--out", str(tmp_path / "out")))
    assert wrong.returncode == 1
    assert wrong.stderr == "gateway pipeline: Invalid authentication token\n"
    conf = run(
        "rollup",
        server,
        *rollup(gateway, "mistaken", "--out", str(tmp_path / "out")),
        "--conf",
        "spark.driver.memory=2g",
    )
    assert conf.returncode == 64
    assert conf.stderr.startswith("gateway pipeline: --conf spark.driver.memory: the server does not take it: ")
    assert len(conf.stderr.splitlines()) == 1
    followed = run(
        "rollup",
        server,
        *rollup(gateway, "mistaken", "--out", str(tmp_path / "out"), "--checkpoint", str(tmp_path / "checkpoint")),
    )
    assert followed.returncode == 1
    assert followed.stderr == (
        "gateway pipeline: the server's Python has no gateway_spark, which jobs that follow a stream need: "
        "install it there\n"
    )
