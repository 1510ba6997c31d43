"""docs/glossary.md lists each class of the kernel, and a reason for each class name that is used twice."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
GLOSSARY: Final = (ROOT / "docs/glossary.md").read_text()
FOLDERS: Final = ("gateway", "protocols", "storage", "plugins", "pipeline")


def classes_in(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the public classes of the modules in a folder and below it."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, file


def rows_of(section: str) -> list[str]:
    """Return the first cells of a section's tables."""
    text = GLOSSARY.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)


def test_each_class_of_the_kernel_is_listed_and_no_other() -> None:
    there = Counter(name for name, _ in classes_in(ROOT / "gateway/kernel"))
    listed = Counter(rows_of("Classes of the kernel"))
    assert not (there - listed), f"add rows to docs/glossary.md for {sorted(there - listed)}"
    assert not (listed - there), f"remove from docs/glossary.md {sorted(listed - there)}"


def test_each_row_names_the_module_of_its_class() -> None:
    there = {
        (str(file.relative_to(ROOT).parent), name, file.stem) for name, file in classes_in(ROOT / "gateway/kernel")
    }
    section = GLOSSARY.partition("\n## Classes of the kernel\n")[2].partition("\n## ")[0]
    listed = set()
    for package in section.split("\n### ")[1:]:
        folder, _, rows = package.partition("\n")
        listed |= {(folder.strip("`"), *row) for row in re.findall(r"^\| `(\w+)` \| `(\w+)` \|", rows, re.MULTILINE)}
    assert listed - there == set()


def test_each_class_name_that_stands_for_two_things_has_a_reason() -> None:
    count = Counter(name for top in FOLDERS for name, _ in classes_in(ROOT / top))
    assert sorted(rows_of("Names used twice")) == sorted(name for name, times in count.items() if times > 1)
