"""Tables of archives in Spark SQL with Iceberg's own runtime: read, rewritten and expired, while the gateway files."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.columnar.encoding.worker import Worker
from tests.columnar.served_tables import ServedTables, serving
from tests.interop.broker import PROJECT
from tests.interop.tools import java_libraries
from tests.pipeline.java import ENVIRONMENT

HERE: Final = Path(__file__).parent

#: The Spark for which Iceberg has a runtime (``make test-oldest``).
SPARK: Final = PROJECT / ".venv/oldest-spark"

NAME: Final = "site.gateway.archive"


class SparkSql:
    """A session of Spark as a child process."""

    def __init__(self, jar: Path, uri: str) -> None:
        environment = {"PYTHONPATH": str(SPARK), "SPARK_HOME": str(SPARK / "pyspark"), **ENVIRONMENT}
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "spark_sql.py"), str(jar), uri],
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, statement: str) -> list[list[Any]]:
        """Return the rows of a statement."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(statement, file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        assert isinstance(answer, list), answer
        return answer

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


@pytest.fixture(scope="module")
def runtime() -> Path:
    [jar] = java_libraries(HERE).glob("iceberg-spark-runtime*.jar")
    return jar


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedTables]:
    with serving(tmp_path) as served:
        yield served


@pytest.fixture
def sql(runtime: Path, served: ServedTables) -> Iterator[SparkSql]:
    sql = SparkSql(runtime, served.uri)
    yield sql
    sql.end()


@pytest.mark.timeout(400)
def test_spark_reads_rewrites_and_expires_while_segments_are_filed(served: ServedTables, sql: SparkSql) -> None:
    worker = Worker()
    for first in range(0, 50, 10):
        assert served.file(worker, first, first + 10) == ""
    columns = "count(*), min(offset), max(offset), count(distinct offset)"
    assert sql(f"SELECT {columns} FROM {NAME}") == [[50, 0, 49, 50]]
    assert sql(f"SELECT source, source_name, decode(body, 'UTF-8') FROM {NAME} WHERE offset = 7") == [
        ["queue", "q", "body"]
    ]
    assert len(sql(f"SELECT * FROM {NAME}.snapshots")) == 5

    merged = sql(
        "CALL site.system.rewrite_data_files(table => 'gateway.archive', options => map('min-input-files','2'))"
    )
    assert merged[0][:2] == [5, 1]
    assert served.file(worker, 50, 60) == ""
    assert sql(f"SELECT {columns} FROM {NAME}") == [[60, 0, 59, 60]]

    expired = "CALL site.system.expire_snapshots(table => 'gateway.archive', older_than => now(), retain_last => 1)"
    assert sql(expired)
    assert len(sql(f"SELECT * FROM {NAME}.snapshots")) == 1
    for first in (50, 40):  # repeated, as if their answers had been lost
        assert served.file(Worker(), first, first + 10) == ""
    assert served.file(Worker(), 60, 70) == ""
    assert sql(f"SELECT {columns} FROM {NAME}") == [[70, 0, 69, 70]]
    assert served.offsets() == list(range(70))
