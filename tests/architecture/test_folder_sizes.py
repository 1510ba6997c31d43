"""Folders fit on a screen: a reader sees all of their files at once."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOPS = (
    *("gateway", "protocols", "storage", "plugins", "pipeline"),
    *("tests", "benchmarks", "docs", "etc", "examples"),
)

#: The lines of a screen.
MOST_ENTRIES = 50

#: What tools write beside the sources.
WRITTEN = ("__pycache__", "node_modules", ".tools")


def folders() -> Iterator[tuple[str, int]]:
    """Return each folder of the project, with the number of its files and folders."""
    for top in TOPS:
        for folder in (ROOT / top, *(ROOT / top).rglob("*")):
            if folder.is_dir() and not any(part in WRITTEN for part in folder.parts):
                entries = [entry for entry in folder.iterdir() if entry.name not in WRITTEN]
                yield str(folder.relative_to(ROOT)), len(entries)


def test_no_folder_has_more_entries_than_a_screen_has_lines() -> None:
    found = dict(folders())
    assert found["gateway/kernel"] > 10
    too_many = {folder: count for folder, count in found.items() if count > MOST_ENTRIES}
    assert not too_many, "move a group of files into a folder of its own, named for what they have in common"
