"""The job ``rollup``, run by its command line."""

import json
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas
import pytest
from pyspark.sql import SparkSession

from gateway_spark.errors import Unreachable
from gateway_spark.jobs import progress, running
from gateway_spark.jobs.inputs import awaited
from gateway_spark.jobs.job import Reads
from gateway_spark.jobs.rollup import JOB
from gateway_spark.jobs.running import main, parser_of
from gateway_spark.reports.page import ResultTables
from tests.pipeline.archives import write_file
from tests.pipeline.fake_broker import FakeBroker
from tests.pipeline.readings_broker import QUEUE, broker_with
from tests.pipeline.weather import bodies, daily_figures, weather
from tests.waiting import wait_until

FIELDS = ["--field", "$.temp", "--field", "$.wind_gust", "--by", "$.origin", "--time", "$.time_hour", "--window", "1d"]


@pytest.fixture(scope="module")
def readings() -> pandas.DataFrame:
    """The first weeks of the year; the tests with a real broker roll up all of it."""
    return weather().head(4000)


def run(out: Path, *arguments: str) -> int:
    return main(JOB, [*FIELDS, "--out", str(out), *arguments])


def assert_equal_to_pandas(out: Path, readings: pandas.DataFrame) -> None:
    """Compare with pandas: counts exactly, means to 1e-9."""
    windows = ResultTables(out)["windows"]
    found = windows[windows["count"] > 0].set_index(["origin", "window_start", "field"]).sort_index()
    expected = daily_figures(readings, ["temp", "wind_gust"])
    assert list(found.index) == list(expected.index)
    assert (found["count"] == expected["count"]).all()
    assert (found[["min", "max"]] == expected[["min", "max"]]).all(axis=None)
    assert (found["avg"] - expected["mean"]).abs().max() < 1e-9


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory, readings: pandas.DataFrame) -> Path:
    root = tmp_path_factory.mktemp("archive")
    rows = [{"queue": QUEUE, "body": body} for _, body in bodies(readings)]
    for first in range(0, len(rows), 1500):
        write_file(root, rows[first : first + 1500], first=first)
    return root


def test_the_roll_up_of_the_archived_weather_is_equal_to_pandas(
    spark: SparkSession, archive: Path, readings: pandas.DataFrame, tmp_path: Path
) -> None:
    assert run(tmp_path, "--archive", str(archive), "--queue", QUEUE) == 0
    assert_equal_to_pandas(tmp_path, readings)
    noted = json.loads((tmp_path / "run.json").read_text())
    assert noted["figures"]["windows"] == len(ResultTables(tmp_path)["windows"])
    assert noted["options"]["by"] == ["$.origin"]
    report = (tmp_path / "report.html").read_text()
    assert report.count("<svg") == 2
    assert "EWR" in report


def test_an_archive_without_readings_has_a_report_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    assert run(tmp_path, "--archive", str(tmp_path / "archive")) == 0
    assert "No message has any of the fields" in (tmp_path / "report.html").read_text()


@pytest.fixture(scope="module")
def weather_broker(readings: pandas.DataFrame) -> Iterator[FakeBroker]:
    with broker_with(body for _, body in bodies(readings)) as broker:
        yield broker


def from_stream(broker: FakeBroker, *arguments: str) -> list[str]:
    return ["--queue", QUEUE, "--url", broker.options()["url"], "--option", "retryTimeout=5s", *arguments]


def test_the_roll_up_of_a_whole_stream_is_equal_to_pandas(
    spark: SparkSession, weather_broker: FakeBroker, readings: pandas.DataFrame, tmp_path: Path
) -> None:
    assert run(tmp_path, *from_stream(weather_broker)) == 0
    assert_equal_to_pandas(tmp_path, readings)


def test_the_roll_up_of_a_stream_in_steps_is_equal_to_pandas(
    spark: SparkSession,
    weather_broker: FakeBroker,
    readings: pandas.DataFrame,
    tmp_path: Path,
    checkpoint: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    followed = from_stream(weather_broker, "--checkpoint", checkpoint, "--option", "maxOffsetsPerTrigger=2000")
    weather_broker.declare(QUEUE, 0, 1500)
    assert run(tmp_path, *followed) == 0
    weather_broker.declare(QUEUE, 0, len(readings))
    assert run(tmp_path, *followed) == 0
    assert_equal_to_pandas(tmp_path, readings)
    printed = capsys.readouterr().out
    assert "batch 0: 1500 messages" in printed
    assert "batch 1: 2000 messages" in printed or "batch 2: 2000 messages" in printed
    assert run(tmp_path, *followed) == 0
    assert_equal_to_pandas(tmp_path, readings)


def hourly(*hours: int) -> list[bytes]:
    return [
        json.dumps(
            {"origin": "EWR", "temp": hour, "time_hour": f"2024-01-{1 + hour // 24:02}T{hour % 24:02}:00:00Z"}
        ).encode()
        for hour in hours
    ]


def late_readings() -> list[bytes]:
    """Hours of two days after those of the fifth. In steps of three, Spark drops 4, 5, 30 and 31: three groups."""
    return hourly(0, 100, 101, 1, 2, 3, 4, 5, 30, 31, 102, 103)


LATE = "4 messages were later than the watermark of 10 minutes and missing: use a longer --watermark"


@pytest.mark.parametrize(("late", "code"), [(["--late", "warn"], 0), (["--late", "fail"], 1), ([], 1)], ids=str)
def test_each_message_later_than_the_watermark_is_reported(
    spark: SparkSession, tmp_path: Path, checkpoint: str, capsys: pytest.CaptureFixture[str], late: list[str], code: int
) -> None:
    with broker_with(late_readings()) as broker:
        steps = ["--checkpoint", checkpoint, "--option", "maxOffsetsPerTrigger=3", *late]
        assert run(tmp_path, *from_stream(broker, *steps)) == code
        printed = capsys.readouterr()
        assert (LATE in printed.out, LATE in printed.err) == (True, bool(code))
        noted = json.loads((tmp_path / "run.json").read_text())
        assert noted["figures"]["late messages"] == 4
        assert LATE in (tmp_path / "report.html").read_text()
        assert run(tmp_path, *from_stream(broker, *steps)) == 0


def test_late_messages_of_a_batch_that_is_repeated_are_counted_once(
    spark: SparkSession, tmp_path: Path, checkpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with broker_with(late_readings()) as broker:
        steps = from_stream(broker, "--checkpoint", checkpoint, "--option", "maxOffsetsPerTrigger=10")
        broker.declare(QUEUE, 0, 10)
        assert run(tmp_path, *steps) == 0
        last = max((Path(checkpoint) / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
        last.unlink()
        (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
        assert run(tmp_path, *steps) == 0
    assert "later than the watermark" not in capsys.readouterr().out


def test_a_message_that_is_late_for_some_of_its_windows_is_missing_in_those(
    spark: SparkSession, tmp_path: Path, checkpoint: str
) -> None:
    """Hour 95 is in the windows that begin with hours 72 and 84; the one that ends with hour 96 is closed."""
    with broker_with(hourly(0, 100, 101, 102, 95, 103)) as broker:
        steps = ["--checkpoint", checkpoint, "--option", "maxOffsetsPerTrigger=2", "--slide", "12h", "--late", "warn"]
        assert run(tmp_path, *from_stream(broker, *steps)) == 0
    assert json.loads((tmp_path / "run.json").read_text())["figures"]["late messages"] == 1


@pytest.mark.parametrize("follows", [False, True])
def test_messages_without_a_time_are_reported(
    spark: SparkSession, tmp_path: Path, checkpoint: str, follows: bool
) -> None:
    with broker_with([*hourly(1, 2), b"{}", b"no json", b'{"time_hour": "soon"}']) as broker:
        steps = ["--checkpoint", checkpoint] if follows else []
        assert run(tmp_path, *from_stream(broker, *steps)) == 0
    noted = json.loads((tmp_path / "run.json").read_text())
    assert noted["warnings"] == ["3 messages are in no window, without a time in $.time_hour"]


def test_a_stream_without_any_time_is_reported(spark: SparkSession, tmp_path: Path) -> None:
    with broker_with([b"{}"]) as broker:
        assert run(tmp_path, *from_stream(broker)) == 0
    noted = json.loads((tmp_path / "run.json").read_text())
    assert noted["warnings"] == ["1 message is in no window, without a time in $.time_hour"]


def test_a_longer_watermark_includes_later_readings(spark: SparkSession, tmp_path: Path, checkpoint: str) -> None:
    with broker_with(hourly(0, 100, 101, 1, 2, 102)) as broker:
        steps = ["--checkpoint", checkpoint, "--option", "maxOffsetsPerTrigger=2", "--watermark", "5d"]
        assert run(tmp_path, *from_stream(broker, *steps)) == 0
    windows = ResultTables(tmp_path)["windows"]
    assert windows[windows["field"] == "temp"]["count"].sum() == 6


def test_a_repeated_batch_is_counted_once(spark: SparkSession, tmp_path: Path, checkpoint: str) -> None:
    with broker_with(hourly(*range(48))) as broker:
        followed = from_stream(broker, "--checkpoint", checkpoint, "--option", "maxOffsetsPerTrigger=40")
        assert run(tmp_path, *followed) == 0
        # As if the driver was killed after the batch was written and before Spark recorded its end.
        last = max((Path(checkpoint) / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
        last.unlink()
        (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
        assert run(tmp_path, *followed) == 0
    windows = ResultTables(tmp_path)["windows"]
    assert sorted(windows[windows["field"] == "temp"]["count"]) == [24, 24]


def one_line(printed: Any) -> str:
    (line,) = [line for line in printed.err.splitlines() if line.startswith("gateway pipeline")]
    return line


#: Stands for the empty archive of a test, and for a directory without one.
EMPTY = "EMPTY"
HERE = str(Path(__file__).parent)
WRONG = [
    ([], 64, "--queue NAME, --queue-pattern REGEX or --archive DIR is required"),
    (["--queue", "q", "--exchange", "e"], 64, "--exchange is for --archive"),
    (["--archive", EMPTY, "--queue-pattern", "q.*"], 64, "--queue-pattern is for streams"),
    (["--archive", EMPTY, "--checkpoint", "c"], 64, "--checkpoint is for streams"),
    (["--archive", "absent"], 64, "absent: the directory does not exist"),
    (["--archive", HERE], 64, f"{HERE} is not the directory of an archive or a trace"),
    (["--queue", "q", "--option", "maxOffsetsPerTrigger=5"], 64, "is for streaming queries"),
    (["--queue", "q", "--checkpoint", "c", "--until", "2024-01-01"], 64, "is for batch reads"),
    (["--queue", "q", "--archive", "a", "--source", "stream"], 64, "--archive is for --source archive"),
    (["--source", "archive"], 64, "--archive DIR is required to read the archive"),
    (["--option", "queue"], 64, "--option needs NAME=VALUE"),
    (["--queue", "q", "--option", "startingOfsets=earliest"], 64, "did you mean 'startingOffsets'?"),
    (
        ["--queue", "q", "--url", "http://127.0.0.1:9", "--option", "retryTimeout=1s"],
        1,
        "no answer from http://127.0.0.1:9",
    ),
    (["--conf", "x", "--archive", "a"], 64, "--conf needs NAME=VALUE"),
    (["--archive", EMPTY, "--slide", "2d"], 64, "--slide 2 days is longer than --window 1 day"),
    (["--archive", EMPTY, "--by", "$.site.origin"], 64, "--by $.site.origin cannot be told from --by $.origin"),
    (["--archive", EMPTY, "--by", "$.count"], 64, "--by $.count cannot be told from the column 'count'"),
    (["--archive", EMPTY, "--field", "$.other.temp"], 64, "two of the options --field have the same name"),
    (["--archive", EMPTY, "--since", "2024-01-02", "--until", "2024-01-02"], 64, "--since must be before --until"),
    (["--archive", EMPTY, "--out", __file__], 64, f"{__file__}: it is not a directory"),
    (["--archive", EMPTY, "--master", "spark://127.0.0.1:9"], 1, "no Spark master answers at spark://127.0.0.1:9"),
    (["--archive", EMPTY, "--master", "spark://127.0.0.1"], 64, "must be spark://host:port"),
]


@pytest.mark.parametrize(("arguments", "code", "text"), WRONG)
def test_an_error_is_printed_in_one_line_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, text: str
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run(tmp_path, *(str(empty) if each == EMPTY else each for each in arguments)) == code
    printed = capsys.readouterr()
    assert text in one_line(printed)
    assert printed.out == ""


def test_the_broker_that_a_job_waits_for_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = []

    def unanswered(options: Namespace, reads: Reads) -> None:
        wait_until(lambda: printed.append(capsys.readouterr().out) or any(printed))
        raise Unreachable("no answer")

    monkeypatch.setattr(running, "check", unanswered)
    monkeypatch.setattr(progress, "INTERVAL_S", 0.01)
    assert run(tmp_path, "--queue", "q", "--url", "http://127.0.0.1:9") == 1
    assert "... waiting for an answer of http://127.0.0.1:9\n" in "".join(printed)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--queue", "q"], "waiting for an answer of http://127.0.0.1:15672"),
        (["--queue", "q", "--urls", "http://a:1,http://b:1"], "waiting for an answer of http://a:1,http://b:1"),
        (["--queue", "q", "--brokers", "{}"], "waiting for an answer of the brokers"),
        (["--archive", EMPTY], ""),
    ],
)
def test_what_a_job_waits_for_follows_from_its_options(arguments: list[str], text: str) -> None:
    assert awaited(parser_of(JOB).parse_args([*FIELDS, *arguments])) == text


NO_WORDS = [
    (["--field", "temperature"], "it must be a column of messages, headers.NAME or a JSON path such as $.temp"),
    (["--by", "mqtt.topics"], "headers.NAME or a JSON path such as $.temp, not 'mqtt.topics'"),
    (["--time", "$..["], "headers.NAME or a JSON path such as $.temp, not '$..['"),
    (["--window", "soon"], "it must be a number with ms, s, m, h or d, such as 15m, not 'soon'"),
    (["--window", "0s"], "it must be longer than 0, not '0s'"),
    (["--watermark", "36501d"], "it must be at most 36500d, not '36501d'"),
    (["--window", "99999999999 weeks"], "it must be at most 36500d, not '99999999999 weeks'"),
    (["--watermark", "1 month"], "it must be a number with ms, s, m, h or d, such as 15m, not '1 month'"),
    (["--since", "yesterday"], "it must be milliseconds since 1970, or ISO 8601 such as 2026-01-31T12:00:00Z"),
    (
        ["--master", "spark:7077"],
        "it must be local[N], spark://host:port, sc://host:port, yarn or k8s://..., not 'spark:7077'",
    ),
]


@pytest.mark.parametrize(("arguments", "text"), NO_WORDS)
def test_values_that_spark_would_reject_are_refused_before_it_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, *arguments)
    assert ended.value.code == 64
    assert text in capsys.readouterr().err


MASTERS = [
    "local",
    "local[4]",
    "local[*]",
    "local[2,3]",
    "local-cluster[2,1,1024]",
    "yarn",
    "spark://a:1,b:2",
    "k8s://h",
]


@pytest.mark.parametrize("master", MASTERS)
def test_every_master_of_spark_is_accepted(master: str) -> None:
    assert parser_of(JOB).parse_args([*FIELDS, "--master", master]).master == master


INTERVALS = [
    ("90m", "90 minutes"),
    ("60m", "1 hour"),
    ("30d", "30 days"),
    ("400d", "400 days"),
    ("36500d", "36500 days"),
    ("1000001s", "1000001 seconds"),
    ("1500ms", "1500 milliseconds"),
    ("1 day", "1 day"),
    ("2 weeks", "14 days"),
    ("2 Hours 5 minutes", "125 minutes"),
    ("interval 1 second 5 microseconds", "1000005 microseconds"),
]


@pytest.mark.parametrize(("text", "shown"), INTERVALS)
def test_an_interval_is_written_in_the_largest_whole_unit(text: str, shown: str) -> None:
    options = parser_of(JOB).parse_args([*FIELDS, "--window", text, "--watermark", text, "--slide", text])
    assert (options.window, options.watermark, options.slide) == (shown, shown, shown)


def test_months_of_window_and_years_of_watermark_are_rolled_up(
    spark: SparkSession, tmp_path: Path, checkpoint: str
) -> None:
    long = ["--window", "30d", "--slide", "15d", "--watermark", "400d", "--every", "12d"]
    with broker_with(hourly(0, 100, 700)) as broker:
        assert run(tmp_path, *from_stream(broker, "--checkpoint", checkpoint, *long)) == 0
    windows = ResultTables(tmp_path)["windows"]
    assert windows[windows["field"] == "temp"]["count"].sum() == 6
