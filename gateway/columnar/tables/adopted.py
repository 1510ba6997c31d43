"""The lists of files in directories of the Parquet layout that an Iceberg table has adopted.

``_adopted.jsonl`` in the directory of a day has a line of JSON for each commit: the names of its files. ``_iceberg`` in
the root tells programs that know the Parquet layout that the files belong to a table.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gateway.columnar.tables.files import replaced, sync_directory
from gateway.columnar.tables.manifest import NAME
from gateway.columnar.tables.table_directory import days_of_table
from gateway.kernel.errors import StorageError

LIST: Final = "_adopted.jsonl"
MARKER: Final = "_iceberg"

#: A compaction of the pipeline holds a lock on this file, and refuses to begin once there is a marker.
_COMPACTION_LOCK: Final = "_compact.lock"


def mark(root: Path, table: str) -> None:
    """Mark a directory of the Parquet layout as adopted by a table.

    :raises StorageError: if a compaction of the pipeline runs, which would replace its files.
    """
    with (root / _COMPACTION_LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StorageError(f"{root} is locked by a compaction of the pipeline, which has to end first") from None
        if not (root / MARKER).exists():
            with replaced(root / MARKER) as file:
                file.write(f"{table}\n".encode())


def names_in(directory: Path) -> set[str]:
    """Return the adopted files of a day."""
    try:
        return _listed((directory / LIST).read_bytes())
    except FileNotFoundError:
        return set()


def _listed(written: bytes) -> set[str]:
    """Return the names in a list. A line that was torn by a loss of power is skipped: the commit's property has it."""
    names: set[str] = set()
    for line in written.splitlines():
        try:
            listed = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(listed, list):
            names.update(name for name in listed if isinstance(name, str))
    return names


def last_adoption(written: str) -> tuple[str, list[str]]:
    """Return the directory and the files of the last commit from its property; ``""`` if it says nothing."""
    try:
        last = json.loads(written)
    except (ValueError, RecursionError):
        return "", []
    if (
        not isinstance(last, dict)
        or not isinstance(last.get("directory"), str)
        or not isinstance(last.get("files"), list)
    ):
        return "", []
    return last["directory"], [name for name in last["files"] if isinstance(name, str)]


def adoption_property(directory: Path, names: list[str]) -> str:
    """Return the property of a commit."""
    return json.dumps({"directory": str(directory), "files": names})


def append_names(directory: Path, names: list[str]) -> None:
    """Add a line durably."""
    descriptor = os.open(directory / LIST, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, b"\n" + json.dumps(names).encode() + b"\n")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(directory)


def adopted_files(root: Path) -> Iterator[Path]:
    """Yield the paths of all adopted files below the root of a table in the Parquet layout."""
    for listed in root.glob(f"vhost=*/date=*/{LIST}"):
        yield from (listed.parent / name for name in sorted(names_in(listed.parent)))


def is_adopted(directory: Path) -> bool:
    """Return whether an adoption has seen the manifest of a day as it is now; told by their times, without reading."""
    try:
        return (directory / LIST).stat().st_mtime_ns >= (directory / NAME).stat().st_mtime_ns
    except FileNotFoundError:
        return not (directory / NAME).exists()


def has_unadopted_files(root: Path) -> bool:
    """Return whether a table in the Parquet layout may have files that no Iceberg table has adopted."""
    return not all(map(is_adopted, days_of_table(root)))
