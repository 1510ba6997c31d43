"""``gatewayctl sql`` without its optional packages."""

import sys

import pytest

from gateway.cli.ctl.main import main


def test_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delitem(sys.modules, "gateway.sql.query", raising=False)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert main(["sql", "select 1"]) == 69
    assert capsys.readouterr().err == "Error: gatewayctl sql needs DuckDB: pip install 'gateway-broker[sql]'\n"
