"""The manifest of an archive's directory, ``_manifest.jsonl``: one line of JSON for each valid Parquet file.

A file is valid if a line lists it, no line replaces it, and its size is that of the line. So a file that is
incomplete, was torn by a crash or has another origin is not read; and a single line merges files, because it adds
the new file and removes the old ones atomically. A line that is not JSON was torn and is ignored.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

#: Spark ignores names that begin with an underscore.
MANIFEST: Final = "_manifest.jsonl"

PARQUET_MAGIC: Final = b"PAR1"

#: The magic at both ends and the length of the footer: the smallest Parquet file.
SMALLEST_PARQUET: Final = 12


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """One valid file. Times are in milliseconds since the epoch; ``None`` means not recorded."""

    path: Path
    size_bytes: int
    rows: int | None = None
    first_ms: int | None = None
    last_ms: int | None = None
    line: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


def files_in(directory: Path) -> list[ArchiveFile]:
    """Return the valid files of a directory by name; without a manifest, all complete files."""
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
    """Return the readable lines of a directory's manifest."""
    try:
        written = (directory / MANIFEST).read_bytes()
    except FileNotFoundError:
        return []
    return list(_parsed(written))


def write_manifest(directory: Path, files: Iterable[ArchiveFile]) -> None:
    """Write the manifest of a directory that has none: from now on only these files are valid."""
    fresh = directory / f"{MANIFEST}.new"
    lines = ({"file": file.path.name, "bytes": file.size_bytes} for file in files)
    fresh.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    sync(fresh)
    os.replace(fresh, directory / MANIFEST)
    sync(directory)


def sync(path: Path) -> None:
    """Sync a file or a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def append(directory: Path, line: Mapping[str, Any]) -> None:
    """Append a line durably."""
    with (directory / MANIFEST).open("ab+") as manifest:
        end = manifest.seek(0, os.SEEK_END)
        manifest.seek(max(end - 1, 0))
        torn = manifest.read(1) not in (b"", b"\n")
        # One write, so that concurrent appends do not interleave.
        os.write(manifest.fileno(), b"\n" * torn + json.dumps(line, ensure_ascii=False).encode() + b"\n")
        os.fsync(manifest.fileno())


def is_whole(path: Path) -> bool:
    """Return whether a file has both ends of a Parquet file, and room for the announced footer."""
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
    """Return the file of a line, if it exists with the recorded size."""
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
        # A name with a path separator could refer to another directory.
        if isinstance(line, dict) and isinstance(line.get("file"), str) and Path(line["file"]).name == line["file"]:
            yield line
