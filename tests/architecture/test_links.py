"""Links of the documents lead to files that exist, and to headings that they have."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.interop.pages.blocks import PAGES, ROOT

DOCUMENTS: Final = (*PAGES, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "examples").rglob("*.md")))

_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_CODE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", _CODE.sub("", page.read_text()), re.MULTILINE)
    words = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    return {re.sub(r"[^\w -]", "", text).replace(" ", "-") for text in words}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_each_link_has_a_target(document: Path) -> None:
    broken = []
    for link in _LINK.findall(_CODE.sub("", document.read_text())):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = document.parent / name if name else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert not broken
