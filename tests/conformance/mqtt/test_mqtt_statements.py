"""Every numbered normative statement of MQTT 5.0 and 3.1.1 has a test here, or does not apply to servers."""

from importlib import import_module
from pathlib import Path

import pytest

from tests.conformance.mqtt.statements import NOT_OURS, STATEMENTS, shown


@pytest.fixture(scope="module", autouse=True)
def _import_all_rows() -> None:
    for path in Path(__file__).parent.glob("test_mqtt_*.py"):
        if path.stem != Path(__file__).stem:
            import_module(f"tests.conformance.mqtt.{path.stem}")


@pytest.mark.parametrize(("version", "count"), [(5, 251), (4, 141)], ids=["5.0", "3.1.1"])
def test_there_are_as_many_statements_as_the_appendix_lists(version: int, count: int) -> None:
    assert len(STATEMENTS[version]) == count


@pytest.mark.parametrize("version", [5, 4], ids=["5.0", "3.1.1"])
def test_every_statement_has_a_test_or_a_reason_for_having_none(version: int) -> None:
    assert shown[version] | set(NOT_OURS[version]) == STATEMENTS[version]


@pytest.mark.parametrize("version", [5, 4], ids=["5.0", "3.1.1"])
def test_no_statement_with_a_test_has_a_reason_for_having_none(version: int) -> None:
    assert not shown[version] & set(NOT_OURS[version])
