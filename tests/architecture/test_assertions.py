"""Each test asserts: itself, or by a helper that asserts or fails."""

import ast
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]

#: Calls that fail by themselves when something is wrong: pytest's, and those of the testing kit.
_FAILING: Final = {"raises", "warns", "fail", "deprecated_call", "run_state_machine_as_test"}

_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


class Function(NamedTuple):
    """A function of the tests or the testing kit: whether it asserts, and the functions and methods that it calls."""

    file: Path
    line: int
    name: str
    asserts: bool
    calls: frozenset[str]


@cache
def functions() -> list[Function]:
    """Return the functions of the tests and of the testing kit."""
    found: list[Function] = []
    for folder in ("tests", "gateway/testing"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            if ".tools" not in file.parts:
                nodes = ast.walk(ast.parse(file.read_text()))
                found += [function_of(file, node) for node in nodes if isinstance(node, _DEFINITIONS)]
    return found


def function_of(file: Path, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    calls, asserts = set(), False
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                calls.add(node.func.id)
            elif isinstance(node.func, ast.Attribute):
                calls.add(node.func.attr)
        asserts |= isinstance(node, ast.Assert | ast.Raise)
    return Function(file, function.lineno, function.name, asserts, frozenset(calls))


@cache
def asserting_names() -> frozenset[str]:
    """Return the names of functions that assert, or call one that does."""
    names = _FAILING | {function.name for function in functions() if function.asserts}
    while True:
        more = {function.name for function in functions() if not names.isdisjoint(function.calls)}
        if more <= names:
            return frozenset(names)
        names |= more


def test_each_test_asserts() -> None:
    silent = [
        f"{function.file.relative_to(ROOT)}:{function.line} {function.name}"
        for function in functions()
        if function.name.startswith("test_") and not function.asserts and asserting_names().isdisjoint(function.calls)
    ]
    assert not silent
