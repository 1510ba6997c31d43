"""The archive as a data frame."""

from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import pyarrow
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from gateway.columnar.tables.table_directory import shortened as cut
from gateway_spark.archive import read_archive, read_trace, require_table
from gateway_spark.errors import OptionError
from gateway_spark.schema import MESSAGE_SCHEMA, TRACE_SCHEMA
from tests.pipeline.archives import write_file
from tests.pipeline.frames import START, after, values


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Ten messages of one day, ten of the next, and ten of another queue in another virtual host."""
    write_file(tmp_path, [{}] * 10)
    write_file(tmp_path, [{"timestamp": after(days=1, seconds=number)} for number in range(10)], first=10)
    write_file(tmp_path, [{"queue": "mail"}] * 10, vhost="a/b", first=20)
    return tmp_path


def test_a_whole_archive_has_the_columns_of_messages(spark: SparkSession, archive: Path) -> None:
    frame = read_archive(spark, archive)
    assert frame.schema == MESSAGE_SCHEMA
    assert sorted(values(frame, "offset")) == [(number,) for number in range(30)]


def test_the_archive_of_one_virtual_host(spark: SparkSession, archive: Path) -> None:
    assert set(values(read_archive(spark, archive, vhost="a/b"), "vhost", "queue")) == {("a/b", "mail")}


@pytest.mark.parametrize(("queue", "count"), [("mail", 10), (["mail", "readings"], 30), ("absent", 0)])
def test_the_archives_of_some_queues(spark: SparkSession, archive: Path, queue: str | list[str], count: int) -> None:
    assert read_archive(spark, archive, queue=queue).count() == count


def test_the_archive_of_an_exchange(spark: SparkSession, archive: Path) -> None:
    write_file(archive, [{"queue": None, "exchange": "shop"}, {"queue": None}], first=40, name="exchange")
    assert values(read_archive(spark, archive, exchange="shop"), "offset") == [(40,)]
    assert values(read_archive(spark, archive, exchange=["shop", "amq.topic"]), "offset") == [(40,), (41,)]
    assert read_archive(spark, archive, queue="readings").count() == 20


def test_the_archive_of_an_exchange_includes_messages_over_bindings(spark: SparkSession, archive: Path) -> None:
    """The file belongs to one archive; its rows name the exchange each message was published to."""
    rows = [{"queue": None, "exchange": "orders"}, {"queue": None, "exchange": "shop"}]
    write_file(archive, rows, first=50, name="exchange-shop", extra={"kind": "exchange", "name": "shop", "queue": None})
    write_file(archive, [{}], first=60, name="queue-mail", extra={"kind": "queue", "name": "mail", "queue": "mail"})
    assert sorted(values(read_archive(spark, archive, exchange="shop"), "offset")) == [(50,), (51,)]
    assert values(read_archive(spark, archive, exchange="orders"), "offset") == []
    both = read_archive(spark, archive, vhost="/", queue="mail", exchange="shop")
    assert sorted(values(both, "offset")) == [(50,), (51,), (60,)]


def test_the_archive_of_a_virtual_host_with_a_long_name(spark: SparkSession, tmp_path: Path) -> None:
    """The broker cuts a name that does not fit into the name of a directory."""
    name = "x" * 150
    write_file(tmp_path, [{}], vhost=name)
    (tmp_path / f"vhost={quote(name)}").rename(tmp_path / f"vhost={cut(name)}")
    assert read_archive(spark, tmp_path, vhost=name).count() == 1


BOUNDS = [
    (after(seconds=3), after(seconds=6), [3, 4, 5]),
    (None, after(seconds=1), [0]),
    (after(days=1, seconds=9), None, [19]),
    (after(days=1, seconds=9).replace(tzinfo=None), None, [19]),
    (after(seconds=9, microseconds=1), after(days=1), []),
    (after(days=5), None, []),
    (None, after(days=-5), []),
]


@pytest.mark.parametrize(("since", "until", "offsets"), BOUNDS)
def test_since_is_inclusive_and_until_exclusive(
    spark: SparkSession, archive: Path, since: datetime | None, until: datetime | None, offsets: list[int]
) -> None:
    frame = read_archive(spark, archive, vhost="/", since=since, until=until)
    assert sorted(values(frame, "offset")) == [(offset,) for offset in offsets]


def test_files_of_other_virtual_hosts_and_days_are_not_opened(spark: SparkSession, archive: Path) -> None:
    frame = read_archive(spark, archive, vhost="/", since=after(days=1), until=after(days=2))
    assert [Path(name).parts[-3:-1] for name in frame.inputFiles()] == [("vhost=%252F", "date=2024-01-02")]


def test_torn_and_unknown_files_are_skipped(spark: SparkSession, archive: Path) -> None:
    day = archive / "vhost=%2F" / f"date={START.date()}"
    whole = next(day.glob("*.parquet"))
    (day / "torn-0-1.parquet").write_bytes(whole.read_bytes()[:-9])
    (day / "empty-0-1.parquet").write_bytes(b"")
    (day / "notes.txt").write_text("foreign")
    (day / "_temporary.parquet").write_bytes(b"PAR1")
    foreign = pyarrow.table({"offset": ["not a number"]})
    pyarrow.parquet.write_table(foreign, day / "foreign.parquet")
    (archive / "vhost=%2F" / "date=tomorrow").mkdir()
    (archive / "lost+found").mkdir()
    assert sorted(values(read_archive(spark, archive), "offset")) == [(number,) for number in range(30)]


def test_a_listed_file_that_was_torn_later_is_skipped(spark: SparkSession, archive: Path) -> None:
    whole = next((archive / "vhost=%2F" / f"date={START.date()}").glob("*.parquet"))
    whole.write_bytes(whole.read_bytes()[:-9])
    assert read_archive(spark, archive, vhost="/").count() == 10


def test_an_archive_without_files_is_empty(spark: SparkSession, tmp_path: Path) -> None:
    frame = read_archive(spark, tmp_path)
    assert frame.schema == MESSAGE_SCHEMA
    assert frame.count() == 0


def test_a_missing_archive_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="absent: the directory does not exist"):
        read_archive(spark, tmp_path / "absent")


def test_a_directory_above_the_tables_is_an_error_that_names_them(tmp_path: Path) -> None:
    for name in ("archive/vhost=%2F", "iceberg/readings/metadata", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "iceberg/readings/metadata/version-hint.text").touch()
    with pytest.raises(OptionError) as wrong:
        require_table(tmp_path)
    named = "below it are archive, iceberg/readings"
    assert str(wrong.value) == f"{tmp_path} is not the directory of an archive or a trace; {named}"
    require_table(tmp_path / "archive")
    require_table(tmp_path / "iceberg/readings")
    require_table(tmp_path / "other")


def test_the_trace_has_the_same_layout(spark: SparkSession, tmp_path: Path) -> None:
    write_file(tmp_path, [{"event": "publish", "trace_id": 1}], schema=TRACE_SCHEMA)
    assert values(read_trace(spark, tmp_path), "event", "trace_id", "vhost") == [("publish", 1, "/")]


def test_the_trace_is_not_an_archive(
    spark: SparkSession, archive: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    trace = tmp_path_factory.mktemp("trace")
    write_file(trace, [{"event": "publish"}], schema=TRACE_SCHEMA)
    with pytest.raises(OptionError, match="is the trace, not the archive"):
        read_archive(spark, trace)
    with pytest.raises(OptionError, match="is the archive, not the trace"):
        read_trace(spark, archive)
