"""The figures of what the simulation reaches count the code of functions, by package."""

from typing import Any

from tests.simulation.reached import functions_of, table_of


def _summary(lines: int, missing: int, branches: int, reached: int) -> dict[str, Any]:
    return {
        "num_statements": lines,
        "covered_lines": lines - missing,
        "missing_lines": missing,
        "num_branches": branches,
        "covered_branches": reached,
    }


REPORT = {
    "files": {
        "gateway/kernel/queueing/queue.py": {
            "functions": {
                "": {"summary": _summary(100, 0, 0, 0)},  # the module
                "Queue.offer": {"summary": _summary(8, 2, 4, 3)},
                "Queue.take": {"summary": _summary(2, 2, 0, 0)},
            }
        },
        "gateway/cli/main.py": {"functions": {"main": {"summary": _summary(5, 5, 0, 0)}}},
    }
}


def test_functions_of_the_parts_that_take_part_count() -> None:
    found = [(each.package, each.name, each.unreached) for each in functions_of(REPORT)]
    assert found == [("gateway/kernel/queueing", "Queue.offer", 2), ("gateway/kernel/queueing", "Queue.take", 2)]


def test_the_table_has_a_row_for_each_package_and_the_sum() -> None:
    rows = list(table_of(functions_of(REPORT)))
    assert "| `gateway/kernel/queueing` | 10 | 60% | 4 | 75% |" in rows
    assert rows[-1] == "| all | 10 | 60% | 4 | 75% |"
