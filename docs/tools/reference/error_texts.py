"""The texts of errors in the sources: constant texts, and f-strings with names for their values."""

import ast
from collections.abc import Iterator, Set
from pathlib import Path

ROOT = Path(__file__).parents[3]
TOPS = ("gateway", "protocols", "storage", "plugins")


def error_texts(kinds: Set[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the kind, the text and the path of the module for each error of these classes that the sources make.

    A text that a function composes elsewhere is left out.
    """
    for top in TOPS:
        for path in sorted((ROOT / top).rglob("*.py")):
            if "simulation" in path.parts or "testing" in path.parts:
                continue
            module = path.relative_to(ROOT).as_posix()
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
                    continue
                text = text_of(node.args[0])
                if node.func.id in kinds and text.strip("A-Z_ "):
                    yield node.func.id, text, module


def text_of(node: ast.expr) -> str:
    """Return a text with ``NAME`` for each value in it; nothing if it is not a text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_part, node.values))
    return ""


def _part(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.FormattedValue)
    name = _name(node.value)
    return f"'{name}'" if node.conversion == ord("r") else name


def _name(node: ast.expr) -> str:
    """Return the last name of an expression in capitals: ``queue.name`` is QUEUE_NAME, ``len(rows)`` is ROWS."""
    if isinstance(node, ast.Name):
        return node.id.strip("_").upper()
    if isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) and node.value.id != "self" else ""
        return f"{owner}_{node.attr.strip('_')}".strip("_").upper()
    if isinstance(node, ast.Call):
        if node.args:
            return _name(node.args[0])
        is_own = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "self"
        return _name(node.func.value if isinstance(node.func, ast.Attribute) and not is_own else node.func)
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    return _name(names[-1]) if names else "VALUE"
