"""The jobs that only make tables and a report: dead-letters, latency, anomaly."""

import json
from pathlib import Path

from pyspark.sql import SparkSession

from gateway_spark.jobs import anomaly, dead_letters, latency
from gateway_spark.jobs.running import main
from gateway_spark.reports.page import ResultTables
from gateway_spark.schema import TRACE_SCHEMA
from tests.pipeline.archives import write_file
from tests.pipeline.frames import after
from tests.pipeline.test_spark_latencies import life


def report(out: Path) -> str:
    return (out / "report.html").read_text()


def test_dead_letters(spark: SparkSession, tmp_path: Path) -> None:
    death = {"reason": "expired", "count": 2, "time": after(), "exchange": "shop", "routing_keys": ["<b>new</b>"]}
    rows = [{"x_death": [{"queue": f"q{number % 2}", **death}], "body": b"<script>"} for number in range(6)]
    write_file(tmp_path / "archive", rows)
    out = tmp_path / "out"
    assert main(dead_letters.JOB, ["--archive", str(tmp_path / "archive"), "--out", str(out), "--samples", "1"]) == 0
    tables = ResultTables(out)
    assert list(tables["causes"]["messages"]) == [3, 3]
    assert list(tables["causes"]["deaths"]) == [6, 6]
    assert list(tables["keys"]["deaths"]) == [12]
    assert len(tables["samples"]) == 2
    page = report(out)
    assert "2 of 2 paths are loops" in page
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert "<b>new" not in page


def test_latency(spark: SparkSession, tmp_path: Path) -> None:
    rows = [event for number in range(1, 4) for event in life(number, number * 1000.0, 5, 20)]
    trace = [
        {
            "timestamp": after(milliseconds=row["ms"]),
            "monotonic_ns": int(row["ms"] * 1e6),
            "protocol": "amqp",
            "queue": "orders",
        }
        | {name: value for name, value in row.items() if name != "ms"}
        for row in rows
    ]
    write_file(tmp_path / "trace", trace, schema=TRACE_SCHEMA)
    out = tmp_path / "out"
    assert main(latency.JOB, ["--archive", str(tmp_path / "trace"), "--queue", "orders", "--out", str(out)]) == 0
    (row,) = ResultTables(out)["latencies"].to_dict("records")
    assert (row["queue"], row["deliveries"], row["redelivered"]) == ("orders", 3, 0.0)
    assert (row["to_deliver_p50"], row["to_settle_p99"], row["in_all_p95"]) == (5.0, 20.0, 25.0)
    assert report(out).count("<svg") == 3
    assert "drag: { x: true" in report(out)  # the script that zooms


def test_anomaly(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"body": {"v": number % 5, "bad": 0}} for number in range(30)] + [{"body": {"v": 99, "bad": 1}}]
    write_file(tmp_path / "archive", [{**row, "body": json.dumps(row["body"]).encode()} for row in rows])
    out = tmp_path / "out"
    arguments = ["--field", "$.v", "--label", "$.bad", "--archive", str(tmp_path / "archive"), "--out", str(out)]
    assert main(anomaly.JOB, arguments) == 0
    assert list(ResultTables(out)["anomalies"]["value"]) == [99.0]
    assert json.loads((out / "run.json").read_text())["figures"] == {
        "readings": 31,
        "anomalies": 1,
        "precision": 1.0,
        "recall": 1.0,
    }
    assert "Against the labels" in report(out)


def test_an_empty_input_has_a_report_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    nothing = ["--archive", str(tmp_path / "empty"), "--out", str(tmp_path / "out")]
    assert main(dead_letters.JOB, nothing) == 0
    assert "No message was dead-lettered" in report(tmp_path / "out")
    assert main(latency.JOB, nothing) == 0
    assert "The trace contains no delivery" in report(tmp_path / "out")
    assert main(anomaly.JOB, [*nothing, "--field", "$.v"]) == 0
    assert "No reading is beyond" in report(tmp_path / "out")
