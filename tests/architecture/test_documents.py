"""All paths in the documents exist."""

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


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_each_path_that_is_named_exists(document: Path) -> None:
    # a last part in capitals without an extension stands for a name, as in `pipeline/JOB`
    named = {path for path in _PATH.findall(document.read_text()) if not re.search(r"/[A-Z]+$", path)}
    missing = sorted(path for path in named if not (ROOT / path).exists())
    assert not missing, f"{document.relative_to(ROOT)} names paths that do not exist"
