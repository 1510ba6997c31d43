"""docs/pipeline.md: its examples run, and it covers all commands and jobs."""

import re
import shlex
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from gateway_spark.__main__ import parser
from gateway_spark.catalogue import BY_NAME, ENTRIES, JobEntry
from gateway_spark.jobs.rollup import JOB
from gateway_spark.jobs.running import main, parser_of
from tests.pipeline.archives import write_file
from tests.pipeline.frames import after
from tests.pipeline.weather import bodies, weather

PAGE: Final = (Path(__file__).parents[2] / "docs" / "pipeline.md").read_text(encoding="utf-8")

COMMANDS: Final = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("gateway pipeline ")
]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_on_the_page_can_be_parsed(command: str) -> None:
    options = parser().parse_args(shlex.split(command)[2:])
    if options.verb in ("run", "submit"):
        parser_of(BY_NAME[options.job].load()).parse_args(options.arguments)


def test_there_is_an_example_of_each_command() -> None:
    verbs = {command.split()[2] for command in COMMANDS}
    assert verbs == {"list", "run", "submit", "status", "plot"}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_each_job_is_in_the_table(entry: JobEntry) -> None:
    assert f"| `{entry.name}` |" in PAGE


@pytest.fixture
def weather_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive of the first hundred readings of the year, at the path of the examples."""
    monkeypatch.chdir(tmp_path)
    rows = [{"queue": None, "body": body} for _, body in bodies(weather().head(100))]
    write_file(tmp_path / "data" / "archive", [{"timestamp": after(seconds=1), **row} for row in rows], name="exchange")
    return tmp_path


def test_the_notebook_example_runs(
    spark: SparkSession, weather_archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(example, "docs/pipeline.md", "exec"), {})
    shown = capsys.readouterr().out
    assert "|   EWR|2013-01-01 00:00:00|" in shown
    assert "|   EWR|      1|2013-01-01 06:00:00|" in shown


def test_the_first_roll_up_example_runs(spark: SparkSession, weather_archive: Path) -> None:
    (command,) = [command for command in COMMANDS if command.startswith("gateway pipeline run rollup --archive")]
    assert main(JOB, shlex.split(command)[4:]) == 0
    assert (weather_archive / "pipeline" / "rollup" / "report.html").is_file()
