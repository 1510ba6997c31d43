"""The list of files in one directory of a table: one line of JSON for each file, in the order of creation.

A file without a line is not part of the table. A line may list files that it ``replaces``, which are then no longer
part of the table. A torn line, left by a loss of power, is skipped.
"""

import json
import os
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from gateway.columnar.tables.files import sync_directory

NAME: Final = "_manifest.jsonl"
"""The name of the manifest. Spark ignores files with a leading underscore."""

#: Manifests whose names are cached: one for each virtual host and day that is being written.
_MOST_READ: Final = 64

Line: TypeAlias = dict[str, Any]


def append_line(directory: Path, line: Line) -> None:
    """Append a line and sync the file."""
    path = directory / NAME
    is_new = not path.exists()
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        encoded = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        os.write(descriptor, b"\n" + encoded if is_torn else encoded)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if is_new:
        sync_directory(directory)


def lines(directory: Path) -> Iterator[Line]:
    """Yield the readable lines."""
    try:
        written = (directory / NAME).read_bytes()
    except FileNotFoundError:
        return
    yield from _readable(written)


class KnownNames:
    """A cache of the file names in manifests; each manifest is read on from the last position.

    A day has one line for each file, so reading all lines for every new file would be quadratic.
    """

    def __init__(self) -> None:
        self._read: OrderedDict[Path, tuple[int, set[str]]] = OrderedDict()

    def names_in(self, directory: Path) -> set[str]:
        """Return the names of all files that are or were part of the table in this directory; none of them is
        written again.
        """
        read_to, names = self._read.pop(directory, (0, set()))
        try:
            with (directory / NAME).open("rb") as file:
                if file.seek(0, os.SEEK_END) < read_to:  # the manifest was replaced by a new file
                    read_to, names = 0, set()
                file.seek(read_to)
                written = file.read()
        except FileNotFoundError:
            return set()
        whole = written.rfind(b"\n") + 1
        for line in _readable(written[:whole]):
            names.update(_names(line))
        self._read[directory] = read_to + whole, names
        if len(self._read) > _MOST_READ:
            self._read.popitem(last=False)
        return names


def _readable(written: bytes) -> Iterator[Line]:
    for encoded in written.splitlines():
        try:
            line = json.loads(encoded)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict) and isinstance(line.get("file"), str):
            yield line


def _names(line: Line) -> Iterator[str]:
    yield line["file"]
    replaced = line.get("replaces")
    if isinstance(replaced, list):
        yield from (name for name in replaced if isinstance(name, str))
