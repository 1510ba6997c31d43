"""The programs of docs/arrow.md, run unchanged against a broker: pandas, Polars and DuckDB see the same messages."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import gateway_arrow
from gateway_spark.errors import AccessError
from tests.interop.broker import PROJECT
from tests.pipeline.broker_api import call
from tests.pipeline.conftest import PIPELINE
from tests.pipeline.stream_broker import StreamBroker, stream_broker
from tests.ports import free_port

PAGE: Final = PROJECT / "docs" / "arrow.md"
MESSAGES: Final = 3_000
TIMEOUT_S: Final = 120


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StreamBroker]:
    """A broker with the stream ``readings``, of several segments."""
    with stream_broker(tmp_path_factory.mktemp("arrow")) as broker:
        broker.declare_stream("readings")
        broker.publish("readings", bodies(0, MESSAGES))
        yield broker


def bodies(begin: int, end: int) -> Iterator[bytes]:
    return (json.dumps({"device": f"d{number % 7}", "value": number}).encode() for number in range(begin, end))


def run(name: str, broker: StreamBroker, directory: Path) -> str:
    """Run a program of the page; return its output."""
    programs = {found: text for text, found in re.findall(r"```python\n(# (\S+)\n.*?)```", PAGE.read_text(), re.DOTALL)}
    program = directory / name
    program.write_text(programs[name].replace("http://127.0.0.1:15672", broker.options()["url"]))
    ended = subprocess.run(
        [sys.executable, program],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(PIPELINE)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize("program", ["with_pandas.py", "with_polars.py", "with_duckdb.py"])
def test_programs_count_the_messages_of_each_device(program: str, readings: StreamBroker, tmp_path: Path) -> None:
    counts = {f"d{device}": len(range(device, MESSAGES, 7)) for device in range(7)}
    assert json.loads(run(program, readings, tmp_path)) == counts


def test_a_program_goes_on_at_its_position(readings: StreamBroker, tmp_path: Path) -> None:
    assert run("resumed.py", readings, tmp_path) == f"{MESSAGES} messages\n"
    readings.publish("readings", bodies(MESSAGES, MESSAGES + 10))
    assert run("resumed.py", readings, tmp_path) == "10 messages\n"
    assert run("resumed.py", readings, tmp_path) == "0 messages\n"


def test_reading_requires_the_permission(readings: StreamBroker) -> None:
    call(readings.gateway, "PUT", "users/stranger", {"password": "s", "tags": ""})
    call(readings.gateway, "PUT", "permissions/%2F/stranger", {"configure": "", "write": ".*", "read": "other"})
    url = readings.options()["url"]
    with pytest.raises(AccessError, match="user 'stranger' lacks the permission to read on queue 'readings'"):
        gateway_arrow.read(url, "readings", username="stranger", password="s")
    with pytest.raises(AccessError, match="refuses user 'stranger'"):
        gateway_arrow.read(url, "readings", username="stranger", password="wrong")


def test_a_broker_that_is_killed_meanwhile_is_waited_for(tmp_path: Path) -> None:
    with stream_broker(tmp_path / "killed", f"management.port={free_port()}") as broker:
        broker.declare_stream("readings")
        broker.publish("readings", bodies(0, MESSAGES))
        reading = gateway_arrow.StreamReading(broker.options()["url"], "readings", columns=["body"], retryTimeout="60s")
        first = reading.reader.read_next_batch()
        broker.gateway.restart()
        rest = reading.reader.read_all()
        found = [*first["body"].to_pylist(), *rest["body"].to_pylist()]
    assert found == list(bodies(0, MESSAGES))
