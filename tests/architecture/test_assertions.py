"""Each test asserts: itself, or by a helper that asserts or fails."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]

#: Calls that fail by themselves when something is wrong: pytest's, and those of the testing kit.
_FAILING: Final = {"raises", "warns", "fail", "deprecated_call", "run_state_machine_as_test"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def functions() -> list[tuple[Path, Function]]:
    """Return the functions of the tests and of the testing kit."""
    found: list[tuple[Path, Function]] = []
    for folder in ("tests", "gateway/testing"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            if ".tools" not in file.parts:
                tree = ast.parse(file.read_text())
                found += [(file, node) for node in ast.walk(tree) if isinstance(node, Function)]
    return found


def calls_in(function: Function) -> Iterator[str]:
    """Yield the names of the functions and methods that a function calls."""
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                yield node.func.id
            elif isinstance(node.func, ast.Attribute):
                yield node.func.attr


def asserts(function: Function) -> bool:
    return any(isinstance(node, ast.Assert | ast.Raise) for node in ast.walk(function))


@cache
def asserting_names() -> frozenset[str]:
    """Return the names of functions that assert, or call one that does."""
    names = _FAILING | {function.name for _, function in functions() if asserts(function)}
    calls = [(function.name, frozenset(calls_in(function))) for _, function in functions()]
    while True:
        more = {name for name, called in calls if not names.isdisjoint(called)}
        if more <= names:
            return frozenset(names)
        names |= more


def test_each_test_asserts() -> None:
    silent = [
        f"{file.relative_to(ROOT)}:{function.lineno} {function.name}"
        for file, function in functions()
        if function.name.startswith("test_")
        and not asserts(function)
        and not asserting_names().intersection(calls_in(function))
    ]
    assert not silent
