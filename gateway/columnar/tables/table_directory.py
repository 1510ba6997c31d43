"""The directory layout of a table: ``TABLE/vhost=NAME/date=YYYY-MM-DD/``, and its file names.

Names are percent-encoded. Spark reads both directory levels as columns.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from hashlib import blake2b
from pathlib import Path
from typing import Final
from urllib.parse import quote

from gateway.columnar.tables.files import TEMPORARY, make_directory

#: Longest name in a file name; a longer one is cut and completed by a digest.
_LONGEST_NAME: Final = 120

_LOCK: Final = "_lock"


def day_directory(table: Path, vhost: str, day: date) -> Path:
    """Return the directory for the files of a day."""
    return table / f"vhost={shortened(vhost)}" / f"date={day.isoformat()}"


def days_of_table(table: Path) -> list[Path]:
    """Return the directories of the days of a table, the earliest first."""
    return sorted(table.glob("vhost=*/date=*"), key=lambda path: (path.name, path.parent.name))


def file_name(source: str, first: int, end: int) -> str:
    """Return the name of the file that holds these offsets; it depends on nothing else."""
    return f"{source}-{first:020}-{end:020}.parquet"


def shortened(name: str) -> str:
    """Return a name as a path component."""
    encoded = quote(name, safe="")
    if len(encoded) <= _LONGEST_NAME:
        return encoded
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{encoded[:_LONGEST_NAME].rstrip('%')}~{digest}"


@contextmanager
def exclusively(table: Path) -> Iterator[None]:
    """Hold the exclusive lock on writing the files of a table.

    A worker whose broker died completes its current request first; the next broker's worker waits here for it.
    """
    make_directory(table)
    with (table / _LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def sweep(table: Path) -> None:
    """Remove temporary files left by a crash; only for the holder of the lock."""
    for temporary in table.glob(f"vhost=*/date=*/.*{TEMPORARY}"):
        with suppress(OSError):
            temporary.unlink()
