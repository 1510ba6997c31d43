"""The manifest of an archive's directory: which Parquet files count, one line of JSON for each, in ``_manifest.jsonl``.

A file counts when a line names it, no line replaces it, and it is as large as the line says. So a file that is still
being written, was torn by a crash or belongs to somebody else is not read; and files are merged by one line, which adds
the new file and takes the old ones away at once. A line that is no JSON was torn and counts for nothing.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

#: Spark does not look at names that begin with an underscore.
MANIFEST: Final = "_manifest.jsonl"

PARQUET_MAGIC: Final = b"PAR1"

#: The magic at both ends and the length of the footer: less is no Parquet file.
SMALLEST_PARQUET: Final = 12


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """One file that counts. Times are in milliseconds of the epoch; ``None`` is what nobody wrote down."""

    path: Path
    size_bytes: int
    rows: int | None = None
    first_ms: int | None = None
    last_ms: int | None = None
    line: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


def files_in(directory: Path) -> list[ArchiveFile]:
    """Return the files of a directory that count, by name: without a manifest, all that are whole."""
    if not (directory / MANIFEST).exists():
        return [
            ArchiveFile(path, path.stat().st_size) for path in sorted(directory.glob("*.parquet")) if is_whole(path)
        ]
    lines = lines_of(directory)
    replaced = {name for line in lines for name in line.get("replaces", ())}
    latest = {line["file"]: line for line in lines if line["file"] not in replaced}
    found = (_counted(directory / name, line) for name, line in sorted(latest.items()))
    return [file for file in found if file is not None]


def lines_of(directory: Path) -> list[dict[str, Any]]:
    """Return the lines of a directory's manifest that say something."""
    try:
        written = (directory / MANIFEST).read_bytes()
    except FileNotFoundError:
        return []
    return list(_parsed(written))


def write_manifest(directory: Path, files: Iterable[ArchiveFile]) -> None:
    """Write the manifest of a directory that has none: from now on only these files count."""
    fresh = directory / f"{MANIFEST}.new"
    lines = ({"file": file.path.name, "bytes": file.size_bytes} for file in files)
    fresh.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    sync(fresh)
    os.replace(fresh, directory / MANIFEST)
    sync(directory)


def sync(path: Path) -> None:
    """Have the disk take a file, or the names in a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def append(directory: Path, line: Mapping[str, Any]) -> None:
    """Add a line for good: when this returns, it is on the disk."""
    with (directory / MANIFEST).open("ab+") as manifest:
        end = manifest.seek(0, os.SEEK_END)
        manifest.seek(max(end - 1, 0))
        torn = manifest.read(1) not in (b"", b"\n")
        # One write: whoever else appends meanwhile comes before or after, never between.
        os.write(manifest.fileno(), b"\n" * torn + json.dumps(line, ensure_ascii=False).encode() + b"\n")
        os.fsync(manifest.fileno())


def is_whole(path: Path) -> bool:
    """Tell whether a file has both ends of a Parquet file, and room for the footer that the end speaks of."""
    try:
        size = path.stat().st_size
        if size < SMALLEST_PARQUET:
            return False
        with path.open("rb") as file:
            begins = file.read(4) == PARQUET_MAGIC
            file.seek(size - 8)
            footer_size = int.from_bytes(file.read(4), "little")
            return begins and file.read(4) == PARQUET_MAGIC and footer_size <= size - SMALLEST_PARQUET
    except FileNotFoundError:
        return False


def _counted(path: Path, line: Mapping[str, Any]) -> ArchiveFile | None:
    """Return the file that a line names, if it is there as the line says."""
    size = line.get("bytes")
    if not is_whole(path) or size not in (None, path.stat().st_size):
        return None
    return ArchiveFile(path, path.stat().st_size, line.get("rows"), line.get("first_ms"), line.get("last_ms"), line)


def _parsed(written: bytes) -> Iterator[dict[str, Any]]:
    for text in written.split(b"\n"):
        try:
            line = json.loads(text)
        except ValueError:
            continue
        # A name with a way in it would lead out of the directory.
        if isinstance(line, dict) and isinstance(line.get("file"), str) and Path(line["file"]).name == line["file"]:
            yield line
