"""No class has 400 lines: a larger one is where everything meets."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
MOST_LINES: Final = 399
PACKAGES: Final = ("gateway", "protocols", "storage", "plugins", "pipeline")


def classes_of(package: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for file in sorted((ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                yield str(file.relative_to(ROOT)), node


@pytest.mark.parametrize("package", PACKAGES)
def test_no_class_is_very_large(package: str) -> None:
    lines = {
        f"{file}: {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1 for file, node in classes_of(package)
    }
    assert lines, "no class was found"
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}
