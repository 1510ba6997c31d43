"""Every test in the table of unsupported tests exists."""

import re
from pathlib import Path

from tests.behaviour.unsupported import UNSUPPORTED


def test_every_unsupported_test_exists() -> None:
    sources = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    tests = set(re.findall(r"^def (test_\w+)", sources, re.MULTILINE))
    assert frozenset().union(*UNSUPPORTED.values()) <= tests
