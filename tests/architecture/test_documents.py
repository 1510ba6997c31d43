"""All paths in the documents exist, and the names beside them."""

import ast
import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]

DOCUMENTS: Final = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "tests/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "docs/adr/0020-a-kernel-in-packages.md",
]

#: A path from the top of the repository, between backticks.
_PATH: Final = re.compile(r"`((?:gateway|protocols|storage|plugins|pipeline|tests|benchmarks|docs|etc)/[\w./-]+)`")

#: A class, method or function with the module that defines it: `Queue.offer` (`gateway/kernel/queueing/queue.py`).
_NAME: Final = re.compile(r"`(\w+(?:\.\w+)?)`\s+\(`((?:gateway|protocols|storage|plugins)/[\w/]+\.py)`")


def names_in(path: Path) -> set[str]:
    """Return the classes, functions and methods of a module, methods as ``Class.method``."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return names


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_each_path_that_is_named_exists(document: Path) -> None:
    # a last part in capitals without an extension stands for a name, as in `pipeline/JOB`
    named = {path for path in _PATH.findall(document.read_text()) if not re.search(r"/[A-Z]+$", path)}
    missing = sorted(path for path in named if not (ROOT / path).exists())
    assert not missing, f"{document.relative_to(ROOT)} names paths that do not exist"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_each_name_with_its_module_is_defined_there(document: Path) -> None:
    named = _NAME.findall(document.read_text())
    missing = sorted(f"{name} in {path}" for name, path in named if name not in names_in(ROOT / path))
    assert not missing, f"{document.relative_to(ROOT)} names what its modules do not define"
