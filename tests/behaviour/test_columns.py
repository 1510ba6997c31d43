"""The tables of what a protocol cannot express name tests that are there."""

import re
from pathlib import Path

from tests.behaviour.unsayable import UNSAYABLE


def test_every_unsupported_test_exists() -> None:
    sources = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    tests = set(re.findall(r"^def (test_\w+)", sources, re.MULTILINE))
    assert frozenset().union(*UNSAYABLE.values()) <= tests
