"""A year of weather by MQTT through a real broker; roll-ups of its stream and of its archive are equal to pandas."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

import pandas
import pytest
from pyspark.sql import SparkSession

from gateway_spark.archive import read_archive
from gateway_spark.jobs import presence
from gateway_spark.jobs.rollup import JOB
from gateway_spark.jobs.running import main
from gateway_spark.reports.page import ResultTables
from tests.pipeline.frames import values
from tests.pipeline.java import FOR_EXECUTORS
from tests.pipeline.standalone import standalone
from tests.pipeline.weather import STATIONS, daily_figures, weather

EXAMPLE: Final = Path(__file__).parents[2] / "pipeline" / "examples" / "weather.py"

FIELDS: Final = ["temp", "wind_speed", "pressure"]


class Published(NamedTuple):
    """The stream and the archive after publishing."""

    url: str
    archive: Path
    count: int


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """The program of ``make pipeline``."""
    spec = importlib.util.spec_from_file_location("weather_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def published(example: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    directory = tmp_path_factory.mktemp("weather")
    readings = list(example.weather())
    with example.broker(directory) as addresses:
        example.prepare(addresses["management"])
        example.publish(addresses["mqtt"], readings)
        archive = directory / "data" / "archive"
        example.wait_for_archive(archive, len(readings))
        yield Published(f"http://{addresses['management']}", archive, len(readings))


@pytest.fixture(scope="module")
def readings() -> pandas.DataFrame:
    return weather()


def assert_equal_to_pandas(out: Path, readings: pandas.DataFrame) -> None:
    """Compare with pandas: counts exactly, means to 1e-9."""
    windows = ResultTables(out)["windows"]
    found = windows[windows["count"] > 0].set_index(["origin", "window_start", "field"]).sort_index()
    expected = daily_figures(readings, FIELDS)
    assert list(found.index) == list(expected.index)
    assert (found["count"] == expected["count"]).all()
    assert (found[["min", "max"]] == expected[["min", "max"]]).all(axis=None)
    assert (found["avg"] - expected["mean"]).abs().max() < 1e-9


def test_the_roll_up_of_the_stream_is_equal_to_pandas(
    spark: SparkSession, example: ModuleType, published: Published, readings: pandas.DataFrame, tmp_path: Path
) -> None:
    source = ["--queue", "weather", "--url", published.url, "--checkpoint", str(tmp_path / "checkpoint")]
    assert main(JOB, [*example.ROLLUP, *source, "--out", str(tmp_path)]) == 0
    assert_equal_to_pandas(tmp_path, readings)
    assert json.loads((tmp_path / "run.json").read_text())["warnings"] == []


def test_the_roll_up_of_the_archive_is_equal_to_pandas(
    spark: SparkSession, example: ModuleType, published: Published, readings: pandas.DataFrame, tmp_path: Path
) -> None:
    source = ["--archive", str(published.archive), "--exchange", "amq.topic"]
    assert main(JOB, [*example.ROLLUP, *source, "--out", str(tmp_path)]) == 0
    assert_equal_to_pandas(tmp_path, readings)


def test_the_archive_has_every_mqtt_message_once(spark: SparkSession, published: Published) -> None:
    archived = read_archive(spark, published.archive, exchange="amq.topic")
    assert archived.select("offset").distinct().count() == archived.count() == published.count
    told = values(archived.select("protocol", "client_id", "mqtt.qos", "mqtt.topic").distinct(), "qos", "topic")
    assert sorted(told) == [(1, f"weather/{station}") for station in STATIONS]


def test_presence_finds_the_gaps_of_the_stations(spark: SparkSession, published: Published, tmp_path: Path) -> None:
    devices = ["--by", "$.origin", "--time", "$.time_hour", "--session-gap", "2h", "--factor", "1"]
    last = ["--as-of", "2013-12-30T23:00:00Z", "--queue", "weather", "--url", published.url, "--out", str(tmp_path)]
    assert main(presence.JOB, [*devices, *last]) == 0
    tables = ResultTables(tmp_path)
    assert tables["silences"].groupby("origin").size().to_dict() == dict(zip(STATIONS, (17, 14, 14), strict=True))
    assert tables["silences"]["silence_s"].max() == 6 * 3600
    assert tables["sessions"].groupby("origin").size().to_dict() == dict.fromkeys(STATIONS, 5)


@pytest.mark.timeout(600)
def test_a_job_runs_on_a_standalone_cluster(
    spark: SparkSession, example: ModuleType, published: Published, readings: pandas.DataFrame, tmp_path: Path
) -> None:
    """The driver is a child of spark-submit, the tasks run in an executor of the worker."""
    source = ["--queue", "weather", "--url", published.url, "--checkpoint", str(tmp_path / "checkpoint")]
    settings = [f"spark.driver.{name}=127.0.0.1" for name in ("host", "bindAddress")]
    settings += ["spark.executor.memory=700m", "spark.sql.shuffle.partitions=2", "spark.ui.enabled=false"]
    settings.append(FOR_EXECUTORS)
    conf = [word for setting in settings for word in ("--conf", setting)]
    with standalone(spark, tmp_path) as master:
        command = [sys.executable, "-m", "gateway", "pipeline", "submit", "--master", master, *conf, "rollup"]
        ended = subprocess.run(
            [*command, *example.ROLLUP, *source, "--out", str(tmp_path / "out")],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    assert "rollup: done: windows 3276" in ended.stdout
    assert_equal_to_pandas(tmp_path / "out", readings)
    assert list((tmp_path / "work").glob("app-*"))
