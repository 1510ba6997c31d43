"""The runs of pipeline jobs and their reports, from the files that jobs write."""

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.management.pipeline import job_results
from gateway.management.resources.spark.pipeline_runs import REPORTS_SCRIPT
from tests.management.console import Console

RUN: dict[str, Any] = {
    "job": "rollup", "started": "2026-01-31T10:00:00+00:00", "finished": "2026-01-31T10:00:07+00:00",
    "options": {"queue": ["weather"]}, "figures": {"windows": 365}, "warnings": ["3 readings were late"],
}  # fmt: skip
REPORT = "<!doctype html><title>rollup</title><script>alert(1)</script>"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The directory of all results."""
    directory = tmp_path / "results"
    directory.mkdir()
    return directory


def write(directory: Path, run: object = RUN, report: str | None = REPORT) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "run.json").write_text(run if isinstance(run, str) else json.dumps(run), encoding="utf-8")
    if report is not None:
        (directory / "report.html").write_text(report, encoding="utf-8")


def test_runs_are_listed_by_name_those_with_a_name_of_their_own_too(results: Path) -> None:
    write(results / "rollup")
    write(results / "replay" / "eu again", RUN | {"job": "replay"}, report=None)
    (results / "rollup" / "windows").mkdir()
    console = Console(results=results)
    first, second = console.get("/pipeline-runs")
    assert first == RUN | {"job": "replay", "name": "replay/eu again", "report_bytes": None, "error": ""}
    assert second == RUN | {"name": "rollup", "report_bytes": len(REPORT), "error": ""}
    assert console.get("/pipeline-runs/replay%2Feu%20again") == first
    assert console.ask("GET", "/pipeline-runs/presence").status == 404


def test_a_report_is_a_page_that_runs_one_script_and_has_no_origin(results: Path) -> None:
    write(results / "rollup")
    answer = Console(results=results).ask("GET", "/pipeline-runs/rollup/report")
    assert answer.content.decode() == REPORT
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "frame-ancestors 'none'"} <= set(policy)
    assert [rule for rule in policy if "script" in rule] == ["sandbox allow-scripts", f"script-src '{REPORTS_SCRIPT}'"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_run_without_a_report_has_none_to_read(results: Path) -> None:
    write(results / "rollup", report=None)
    assert Console(results=results).ask("GET", "/pipeline-runs/rollup/report").status == 404


@pytest.mark.parametrize("content", ["{", "[]", "[" * 100_000, '"' + "x" * 300_000 + '"'])
def test_a_note_that_cannot_be_read_is_an_error_of_its_run(results: Path, content: str) -> None:
    write(results / "rollup", content)
    (run,) = Console(results=results).get("/pipeline-runs")
    assert run["error"].startswith("run.json ")
    assert set(run) == {"name", "report_bytes", "error"}


@pytest.mark.parametrize(
    "name", ["..%2Fsecret", "rollup%2F..%2F..%2Fsecret", "%2Fetc", ".", "a%00b", "link", "a%2Fb%2Fc", "rollup%2F"]
)
def test_names_do_not_leave_the_directory(results: Path, tmp_path: Path, name: str) -> None:
    write(results / "rollup")
    write(tmp_path / "secret")
    write(results / "a" / "b" / "c")
    (results / "link").symlink_to(tmp_path / "secret")
    console = Console(results=results)
    assert console.ask("GET", f"/pipeline-runs/{name}").status == 404
    assert console.ask("GET", f"/pipeline-runs/{name}/report").status == 404
    assert [run["name"] for run in console.get("/pipeline-runs")] == ["rollup"]


def test_a_report_that_is_a_link_is_not_sent(results: Path, tmp_path: Path) -> None:
    write(results / "rollup", report=None)
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (results / "rollup" / "report.html").symlink_to(tmp_path / "secret")
    console = Console(results=results)
    assert console.get("/pipeline-runs/rollup")["report_bytes"] is None
    assert console.ask("GET", "/pipeline-runs/rollup/report").status == 404


def test_without_a_directory_there_are_no_runs(tmp_path: Path) -> None:
    assert Console(results=None).get("/pipeline-runs") == []
    assert Console(results=tmp_path / "missing").get("/pipeline-runs") == []
    assert Console(results=None).ask("GET", "/pipeline-runs/rollup").status == 404


def test_the_number_of_listed_runs_is_limited(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_results, "MOST_RUNS", 2)
    for number in range(4):
        write(results / f"job{number}")
    assert len(Console(results=results).get("/pipeline-runs")) == 2


def test_reports_are_for_administrators(results: Path) -> None:
    write(results / "rollup")
    console = Console(results=results)
    console.add_user("maria", "monitoring")
    for path in ("/pipeline-runs", "/pipeline-runs/rollup", "/pipeline-runs/rollup/report"):
        assert console.ask("GET", path, user="maria").status == 401
