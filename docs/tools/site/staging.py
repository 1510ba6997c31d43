"""The sources of the site: the pages at their paths in the repository, and the files that they link to."""

import re
import shutil
from pathlib import Path
from typing import Final

from docs.tools.site.navigation import PARTS, front_page

#: Folders with a page for each entry, whose list is generated: the title of the list.
LISTED: Final = {"docs/adr": "Decisions", "benchmarks/results": "Measurements"}

_LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_FENCED: Final = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_HEADING: Final = re.compile(r"^# (.*)$", re.MULTILINE)


def stage(root: Path, target: Path) -> None:
    """Write the sources of the site into an empty directory. The front page is ``index.md``."""
    staged: set[Path] = set()
    waiting = [root / page for part in PARTS.values() for page in part.pages]
    waiting += [path for folder in LISTED for path in sorted((root / folder).glob("*.md"))]
    while waiting:
        path = waiting.pop()
        if path in staged or path.name == "index.md":  # written below
            continue
        staged.add(path)
        copy = target / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".md":
            shutil.copyfile(path, copy)
            continue
        text, linked = with_links_to_files(path, root)
        copy.write_text(text, encoding="utf-8")
        waiting += linked
    for folder, title in LISTED.items():
        (target / folder / "index.md").write_text(_list_of(root / folder, title), encoding="utf-8")
    (target / "index.md").write_text(front_page(), encoding="utf-8")


def with_links_to_files(page: Path, root: Path) -> tuple[str, list[Path]]:
    """Return the text of a page, whose links to folders lead to their pages, and the files that it links to.

    A folder without a page of its own is no longer a link.
    """
    linked: list[Path] = []

    def changed(link: re.Match[str]) -> str:
        image, text, name, anchor = link.groups()
        if name.startswith(("http://", "https://", "mailto:")):
            return link[0]
        target = (page.parent / name).resolve()
        if target.is_dir():
            entry = "index.md" if target.relative_to(root).as_posix() in LISTED else "README.md"
            if entry == "README.md" and not (target / entry).exists():
                return text
            name = f"{name.rstrip('/')}/{entry}"
            target /= entry
        if target.exists():
            linked.append(target)
        return f"{image}[{text}]({name}{anchor or ''})"

    pieces = _FENCED.split(page.read_text(encoding="utf-8"))
    pieces[::2] = [_LINK.sub(changed, piece) for piece in pieces[::2]]  # the others are blocks of code
    return "".join(pieces), linked


def _list_of(folder: Path, title: str) -> str:
    pages = sorted(path for path in folder.glob("*.md"))
    heads = {path: _HEADING.search(path.read_text(encoding="utf-8")) for path in pages}
    rows = [f"| [{path.stem}]({path.name}) | {head[1] if (head := heads[path]) else ''} |" for path in pages]
    tree = ["```{toctree}", ":hidden:", "", *(path.stem for path in pages), "```"]
    return "\n".join([f"# {title}", "", "| Page | About |", "|---|---|", *rows, "", *tree]) + "\n"
