"""Each file of tests has a name of its own: pytest imports them by name, without their folders."""

from collections import Counter
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parents[1]


def test_no_two_files_of_tests_have_the_same_name() -> None:
    files = [file for file in TESTS.rglob("test_*.py") if "node_modules" not in file.parts]
    count = Counter(file.name for file in files)
    assert [str(file.relative_to(TESTS)) for file in files if count[file.name] > 1] == []
