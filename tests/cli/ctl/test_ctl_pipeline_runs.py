"""The verbs for runs of pipeline jobs."""

import json
from pathlib import Path

import pytest

from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

RUN = {
    "name": "replay/eu", "job": "replay", "started": "2026-01-31T10:00:00+00:00", "report_bytes": 9, "error": "",
    "finished": "2026-01-31T10:00:07+00:00", "options": {"queue": ["weather"]}, "figures": {"messages": 365},
    "warnings": ["3 readings were late"],
}  # fmt: skip


@pytest.fixture(autouse=True)
def runs(api: FakeApi) -> None:
    api.answer("GET pipeline-runs", [RUN])
    api.answer("GET pipeline-runs/replay%2Feu", RUN)
    api.answer("GET pipeline-runs/replay%2Feu/report", "<p>é</p>")


def test_runs_are_listed_with_the_chosen_columns(ctl: Ctl) -> None:
    result = ctl("list_pipeline_runs", "name", "figures", "-s")
    assert (result.code, result.out) == (0, 'replay/eu\t[{"messages",365}]\n')


def test_a_run_is_shown_with_each_member(ctl: Ctl) -> None:
    rows = ctl("pipeline_run", "replay/eu", "-s").out.splitlines()
    assert rows[0] == "name\treplay/eu"
    assert {"job\treplay", "figures.messages\t365"} <= set(rows)
    assert any(row.startswith("options.queue\t") and "weather" in row for row in rows)
    assert not any(row.startswith("error") for row in rows)
    assert json.loads(ctl("pipeline_run", "replay/eu", "--formatter=json").out) == RUN


def test_a_report_is_written_to_a_file_or_printed(ctl: Ctl, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert ctl("pipeline_report", "replay/eu", str(file)).code == 0
    assert json.loads(file.read_text()) == "<p>é</p>"
    assert ctl("pipeline_report", "replay/eu").out.strip() == file.read_text()


def test_errors_name_the_run_or_the_file(ctl: Ctl, tmp_path: Path) -> None:
    result = ctl("pipeline_run", "rollup")
    assert (result.code, result.out) == (69, "Run rollup ...\n")
    assert "there is no run 'rollup': list_pipeline_runs shows those there are" in result.err
    assert "no run 'rollup' with a report" in ctl("pipeline_report", "rollup").err
    missing = str(tmp_path / "missing" / "report.html")
    assert f"cannot write {missing}: No such file or directory" in ctl("pipeline_report", "replay/eu", missing).err
