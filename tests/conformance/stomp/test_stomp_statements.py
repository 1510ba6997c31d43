"""Every statement of the three specifications has a row for each version it applies to."""

from importlib import import_module
from pathlib import Path

import pytest

from tests.conformance.stomp.statements import STATEMENTS, shown


@pytest.fixture(scope="module", autouse=True)
def _import_all_rows() -> None:
    for path in Path(__file__).parent.glob("test_stomp_*.py"):
        if path.stem != Path(__file__).stem:
            import_module(f"tests.conformance.stomp.{path.stem}")


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_every_statement_has_a_row(version: str) -> None:
    said = {statement for statement, versions in STATEMENTS.items() if version in versions}
    assert said - {statement for statement, shown_for in shown if shown_for == version} == set()
