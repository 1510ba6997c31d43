"""Files of exported entries of the audit record: a line of JSON for each, the oldest first.

A crash may leave a last line without its end. It is cut off when the export continues.
"""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from gateway.cli.ctl.errors import WrongData


class ExportedEntries(NamedTuple):
    """The entries of a file, ``None`` for a line that is none, and the size of an incomplete last line."""

    entries: list[dict[str, Any] | None]
    torn_bytes: int


def read_entries(path: Path) -> ExportedEntries:
    """Return the entries of a file. :raises WrongData: if it cannot be read."""
    try:
        written = path.read_bytes()
    except OSError as error:
        raise WrongData(f"cannot read {path}: {error.strerror}") from None
    whole = written.rfind(b"\n") + 1
    return ExportedEntries([_entry(line) for line in written[:whole].splitlines()], len(written) - whole)


def append_entries(path: Path, torn_bytes: int, entries: Iterable[object]) -> int:
    """Append entries to a file, without its torn last line; return their number.

    :raises WrongData: if it cannot be written.
    """
    count = 0
    try:
        with path.open("ab") as file:
            file.truncate(file.tell() - torn_bytes)
            for entry in entries:
                file.write(json.dumps(entry, separators=(",", ":")).encode() + b"\n")
                count += 1
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise WrongData(f"cannot write {path}: {error.strerror}") from None
    return count


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def entries_or_empty(entries: Iterable[dict[str, Any] | None]) -> Iterator[dict[str, Any]]:
    """Yield entries, with an empty object for a line that is none."""
    for entry in entries:
        yield {} if entry is None else entry
