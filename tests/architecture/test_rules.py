"""docs/behaviour.md contains the rules R1 to R158 that code and tests cite."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]

_ROW: Final = re.compile(r"^\| R(\d+) \| (.+) \| (.+) \| `(tests/.+\.py)` \|$", re.MULTILINE)

#: One rule, or the first and the last of several: R12, R51-R59.
_CITED: Final = re.compile(r"\bR(\d{1,3})(?:-R?(\d{1,3}))?\b")

RULES: Final = {
    int(number): Path(test) for number, _, _, test in _ROW.findall((ROOT / "docs/behaviour.md").read_text())
}


def cited_in(text: str) -> Iterator[int]:
    for first, last in _CITED.findall(text):
        yield from range(int(first), int(last or first) + 1)


def sources() -> Iterator[Path]:
    for top in ("gateway", "protocols", "storage", "plugins", "pipeline", "tests", "docs"):
        for file in sorted((ROOT / top).rglob("*")):
            if file.suffix in (".py", ".md") and not any(part.startswith(".") for part in file.relative_to(ROOT).parts):
                yield file


def test_each_rule_has_a_row() -> None:
    assert sorted(RULES) == list(range(1, 159))


@pytest.mark.parametrize("number", sorted(RULES))
def test_the_test_that_shows_a_rule_cites_it(number: int) -> None:
    test = ROOT / RULES[number]
    assert test.is_file(), f"docs/behaviour.md names {RULES[number]} for R{number}, which is not there"
    assert number in cited_in(test.read_text()), f"{RULES[number]} does not cite R{number}"


def test_each_cited_rule_is_a_row() -> None:
    unknown = [
        f"{file.relative_to(ROOT)}: R{n}" for file in sources() for n in cited_in(file.read_text()) if n not in RULES
    ]
    assert not unknown
