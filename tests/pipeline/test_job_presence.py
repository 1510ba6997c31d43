"""The job ``presence``, and the alerts it publishes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from gateway_spark.jobs.presence import JOB
from gateway_spark.jobs.running import main
from gateway_spark.reports.page import ResultTables
from tests.pipeline.archives import write_file
from tests.pipeline.fake_broker import FakeBroker, fake_broker
from tests.pipeline.frames import after
from tests.pipeline.staged import published


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with fake_broker() as running:
        yield running


def seen(key: str, *minutes: int) -> list[dict[str, Any]]:
    return [{"routing_key": key, "timestamp": after(minutes=minute)} for minute in minutes]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Device a sends every minute until the tenth, b until the fourth."""
    root = tmp_path / "archive"
    write_file(root, seen("a", *range(11)) + seen("b", *range(5)))
    return root


def presence(broker: FakeBroker, archive: Path, minute: int, *arguments: str) -> int:
    out = ["--out", str(archive.parent / "out"), "--as-of", after(minutes=minute).isoformat()]
    alerts = ["--alert-exchange", "alerts", "--url", broker.options()["url"]]
    return main(JOB, ["--archive", str(archive), *out, *alerts, *arguments])


def alerted(broker: FakeBroker) -> list[tuple[str, str]]:
    bodies = [json.loads(body) for _, body in published(broker)]
    return sorted((body["routing_key"], body["since"][11:16]) for body in bodies)


def test_silent_devices_are_in_the_tables_and_the_report(
    spark: SparkSession, broker: FakeBroker, archive: Path
) -> None:
    write_file(archive, seen("b", 60), first=100)
    assert presence(broker, archive, 61, "--session-gap", "5m") == 0
    tables = ResultTables(archive.parent / "out")
    assert sorted(tables["sessions"][["routing_key", "session", "messages"]].itertuples(index=False, name=None)) == [
        ("a", 1, 11),
        ("b", 1, 5),
        ("b", 2, 1),
    ]
    assert len(tables["silences"]) == 2
    assert "<svg" in (archive.parent / "out" / "report.html").read_text()


def test_each_silence_causes_one_alert(spark: SparkSession, broker: FakeBroker, archive: Path) -> None:
    presence(broker, archive, 10)
    assert alerted(broker) == [("b", "00:04")]
    presence(broker, archive, 12)
    assert alerted(broker) == [("b", "00:04")]
    presence(broker, archive, 30)
    assert alerted(broker) == [("a", "00:10"), ("b", "00:04")]
    write_file(archive, seen("b", 60), first=100)
    presence(broker, archive, 70)
    assert alerted(broker) == [("a", "00:10"), ("b", "00:04"), ("b", "01:00")]
    assert [commit["query"] for commit in broker.commits] == ["batch 1", "batch 2", "batch 3"]


def test_a_run_that_died_before_it_recorded_its_alerts_is_completed(
    spark: SparkSession, broker: FakeBroker, archive: Path
) -> None:
    presence(broker, archive, 10)
    (archive.parent / "out" / "alerts.published").unlink()
    presence(broker, archive, 30)
    assert [commit["query"] for commit in broker.commits] == ["batch 1", "batch 1", "batch 2"]
    assert alerted(broker) == [("a", "00:10"), ("b", "00:04")]


def test_alerts_that_were_incompletely_stored_are_stored_again(
    spark: SparkSession, broker: FakeBroker, archive: Path
) -> None:
    presence(broker, archive, 10)
    (archive.parent / "out" / "alerts.published").unlink()
    (archive.parent / "out" / "alerts" / "run=1" / "_SUCCESS").unlink()
    broker.commits.clear()
    presence(broker, archive, 30)
    assert alerted(broker) == [("a", "00:10"), ("b", "00:04")]


def test_an_alert_has_the_device_and_its_silence(spark: SparkSession, broker: FakeBroker, archive: Path) -> None:
    presence(broker, archive, 10, "--alert-routing-key", "silent", "--alert-name", "watch")
    ((head, body),) = published(broker)
    assert json.loads(body) == {
        "routing_key": "b",
        "since": "2024-01-01T00:04:00.000Z",
        "silence_s": 360.0,
        "median_interval_s": 60.0,
    }
    assert head["properties"] == {"content_type": "application/json"}
    (commit,) = broker.commits
    assert (commit["exchange"], commit["routing_key"], commit["producer"]) == ("alerts", "silent", "watch")


def test_without_an_exchange_no_alert_is_published(spark: SparkSession, broker: FakeBroker, archive: Path) -> None:
    out = str(archive.parent / "out")
    assert main(JOB, ["--archive", str(archive), "--out", out, "--as-of", after(minutes=30).isoformat()]) == 0
    assert broker.requests == []
