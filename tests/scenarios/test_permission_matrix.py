"""Each operation requires exactly the permissions of its row; over AMQP, MQTT, STOMP and HTTP.

Rules: R3.
"""

from pathlib import Path

import pytest

from tests.scenarios.permission_matrix import ROWS, Need, Row, Scene

EACH_NEED = [pytest.param(row, need, id=f"{row.id}, without {':'.join(need)}") for row in ROWS for need in row.needs]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_permissions_of_a_row_are_sufficient(row: Row) -> None:
    assert row.attempt(Scene(row.needs))


@pytest.mark.parametrize(("row", "missing"), EACH_NEED)
def test_each_permission_of_a_row_is_required(row: Row, missing: Need) -> None:
    every = frozenset((letter, ".*") for letter in "CWR" if letter != missing[0])
    assert not row.attempt(Scene(every | row.needs - {missing}))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_revoked_permission_is_missing_at_the_next_operation(row: Row) -> None:
    scene = Scene(row.needs)
    scene.revoke_between()
    assert not row.attempt(scene)


def written(row: Row) -> str:
    """Return a row in the form of the documentation's table."""
    columns = (", ".join(sorted(_name(name) for letter, name in row.needs if letter == each)) for each in "CWR")
    return f"| {row.protocol} | {row.operation} | {' | '.join(columns)} |"


def _name(name: str) -> str:
    names = {"new": "itself", "q": "queue", "x": "exchange", "src": "source", "dst": "destination", "ae": "alternate",
             "dlx": "dead-letter exchange", "mqtt-subscription-cqos1": "`mqtt-subscription-ID`",
             "mqtt-shared-g-t": "`mqtt-shared-GROUP`", "stomp-subscription-.*": "`stomp-subscription-...`",
             "stomp.gen-.*": "`stomp.gen-...`"}  # fmt: skip
    return names.get(name, f"`{name}`")


def test_the_documentation_has_the_same_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "access.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith(("| AMQP |", "| MQTT |", "| STOMP |", "| HTTP |"))]
    assert lines == [written(row) for row in ROWS]
