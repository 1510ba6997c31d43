"""Find phrases that are not plain technical English: ``python -m tests.architecture.plain_english [PATH ...]``.

Docstrings, comments, string literals that people read (errors, log lines, help) and Markdown files are checked. The
first line of a docstring must name the thing or the action (it must not start with ``What``, ``Who`` or ``How``).
"""

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Final, NamedTuple

#: Words that must not start a docstring.
_RIDDLE: Final = re.compile(r"(What|Who|Whom|Whose|How|Which|Where|That which|As much|As many)\b")

#: A string that starts with one of them: only files with such a string are parsed, which takes ten times as long.
_POSSIBLE_RIDDLE: Final = re.compile(r"""["'][\s\\]*""" + _RIDDLE.pattern)

#: Pronouns in place of client, consumer or operator, and idioms.
_QUAINT: Final = re.compile(
    r"\b(somebody|nobody|whoever|whomever|anybody|everybody|what is said|has to do with|have to do with|goes nowhere"
    r"|went nowhere|is of use|sees? to it|in one breath|now and then|says? something else|hears? nothing|end no more"
    r"|lets? go of|is let in|are let in|were let in|be gone|good for nothing|of its own accord|makes? do with"
    r"|is none of|as long as it likes|has its say|have their say|is told so|are told so)\b",
    re.IGNORECASE,
)  # fmt: skip


#: The folders and files checked by default.
PLACES: Final = [
    "gateway", "protocols", "storage", "plugins", "pipeline", "benchmarks", "tests", "docs",
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md",
]  # fmt: skip


class Finding(NamedTuple):
    """A phrase to replace, and its location."""

    file: Path
    line: int
    phrase: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.phrase}"


def findings_in(file: Path) -> Iterator[Finding]:
    """Yield the phrases to replace in one Python or Markdown file."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".py":
        yield from _quaint(file, 1, text)
        return
    if _POSSIBLE_RIDDLE.search(text):
        yield from _riddles(file, ast.parse(text))
    if not _QUAINT.search(text.replace("_", " ")):
        return
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield from _quaint(file, token.start[0], token.string)
        elif token.type == tokenize.NAME and token.string.startswith("test_"):
            yield from _quaint(file, token.start[0], token.string.replace("_", " "))


def _riddles(file: Path, tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            if _RIDDLE.match(first):
                yield Finding(file, node.body[0].lineno, first)


def _quaint(file: Path, line: int, text: str) -> Iterator[Finding]:
    for found in _QUAINT.finditer(text):
        yield Finding(file, line + text.count("\n", 0, found.start()), found.group())


def checked_files(root: Path, paths: list[str]) -> list[Path]:
    """Return the Python and Markdown files below the paths; without paths, those of the project."""
    tops = paths or PLACES
    found: list[Path] = []
    for top in tops:
        path = root / top
        found += [path] if path.suffix else sorted([*path.rglob("*.py"), *path.rglob("*.md")])
    foreign = [
        file for file in found if any(part.startswith((".", "node_modules")) for part in file.relative_to(root).parts)
    ]
    return [file for file in found if file.is_file() and file not in foreign and "plain_english" not in file.name]


if __name__ == "__main__":
    for each in (finding for file in checked_files(Path.cwd(), sys.argv[1:]) for finding in findings_in(file)):
        print(each)
