"""Iceberg tables as archives of the pipeline's jobs."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from gateway.columnar.encoding.worker import Worker
from gateway.worker_process.framing import Frame
from gateway_spark.archive import read_archive
from gateway_spark.compaction import locked
from gateway_spark.errors import PipelineError
from gateway_spark.iceberg import ADOPTED, table_files
from tests.columnar.iceberg_tables import address_in, request
from tests.columnar.streams import MIDNIGHT_MS, NOON_MS, chunk, message


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """The directory of a table with two queues and an exchange, on two days."""
    worker = Worker()
    exchange = {"source": "exchange", "name": "amq.topic", "queue": None}
    other = {"name": "other", "queue": "other", "vhost": "two"}
    for at_ms, fields in ((NOON_MS, {}), (MIDNIGHT_MS, {"since_ms": 2}), (NOON_MS, exchange), (NOON_MS, other)):
        head = request(address_in(tmp_path), 0, 10, **fields)
        answer = worker.answer(Frame(head, chunk([message(b"%d" % n) for n in range(10)], at_ms=at_ms)))
        assert "error" not in answer.head, answer.head
    return tmp_path / "iceberg/archive"


def test_a_job_reads_the_messages_of_a_source_and_period(spark: SparkSession, table: Path) -> None:
    midnight = datetime.fromtimestamp(MIDNIGHT_MS / 1000, UTC)
    assert read_archive(spark, table).count() == 40
    assert read_archive(spark, table, vhost="/", queue="q").count() == 20
    assert read_archive(spark, table, exchange="amq.topic").select("body").distinct().count() == 10
    assert read_archive(spark, table, queue="q", since=midnight).count() == 10


def test_files_are_selected_by_partition(table: Path) -> None:
    midnight = datetime.fromtimestamp(MIDNIGHT_MS / 1000, UTC)
    assert len(table_files(table, None, None, None)) == 4
    [file] = table_files(table, "two", None, midnight)
    assert (file.rows, dict(file.line), file.path.exists()) == (10, {"kind": "queue", "name": "other"}, True)
    assert table_files(table, None, datetime.fromtimestamp(0, UTC), datetime.fromtimestamp(1, UTC)) == []


def test_the_job_compact_refuses_iceberg_tables_and_what_they_have_adopted(table: Path, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="is an Iceberg table: use gateway archive compact"), locked(table):
        pass
    (tmp_path / ADOPTED).touch()
    with (
        pytest.raises(PipelineError, match="belongs to an Iceberg table: use gateway archive compact"),
        locked(tmp_path),
    ):
        pass
