"""The code blocks of the pages.

| Language | Contains |
|---|---|
| `python` | a program or module whose name is in the first line (`# send.py`), or a fragment, which uses `channel` |
| `sh` | commands to paste; with a name (`sh worker`) a command that goes on, in a terminal of its own |
| `console` | commands after `$ `, and an example of what they print |
| `output` | what the block before it prints; with a name (`output worker`) what that terminal prints |
| `text` | anything else, such as diagrams and examples of messages |

Other languages are data and configurations.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]

#: All pages except the decision records, which describe the past.
PAGES: Final = (
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if "adr" not in page.parts),
)

#: A block, which may be indented as part of a list.
_BLOCK: Final = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One block. ``about`` is the rest of the line that has the language; ``line`` that of its first line of code."""

    page: Path
    line: int
    language: str
    about: str
    text: str

    @property
    def name(self) -> str:
        """The first line of a comment that names a file, without the sign of the comment; ``""`` without one."""
        named = re.match(r"# ([\w.-]+\.\w+)(, .*)?\n", self.text)
        return "" if named is None else named[1]

    @property
    def place(self) -> str:
        """The page and the line."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def commands(self) -> str:
        """The commands of ``sh`` and ``console``."""
        if self.language == "sh":
            return self.text
        return "".join(line[2:] + "\n" for line in self.text.splitlines() if line.startswith("$ "))


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of a page in order."""
    text = page.read_text()
    for found in _BLOCK.finditer(text):
        indent, opening, content = found.groups()
        language, _, about = opening.partition(" ")
        code = "".join(line.removeprefix(indent) for line in content.splitlines(keepends=True))
        yield Block(page, text.count("\n", 0, found.start()) + 2, language, about, code)
