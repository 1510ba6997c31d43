"""Where the files of a table are: ``TABLE/vhost=NAME/date=YYYY-MM-DD/``, and what they are called there.

Names are percent-encoded. Spark reads both directories as columns.
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

#: Longer names would not fit into a file name; what is cut off lives on as a digest.
_LONGEST_NAME: Final = 120

_LOCK: Final = "_lock"


def day_directory(table: Path, vhost: str, day: date) -> Path:
    """Return where the files of a day lie."""
    return table / f"vhost={shortened(vhost)}" / f"date={day.isoformat()}"


def file_name(source: str, first: int, end: int) -> str:
    """Return the name of the file that holds these offsets; the same whenever and however often it is written."""
    return f"{source}-{first:020}-{end:020}.parquet"


def shortened(name: str) -> str:
    """Return a name as a part of a path."""
    encoded = quote(name, safe="")
    if len(encoded) <= _LONGEST_NAME:
        return encoded
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{encoded[:_LONGEST_NAME].rstrip('%')}~{digest}"


@contextmanager
def owned(table: Path) -> Iterator[None]:
    """Be the only one who writes files of a table.

    A worker whose broker died finishes what it is at; that of the next broker waits here for it.
    """
    make_directory(table)
    with (table / _LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def sweep(table: Path) -> None:
    """Remove what was being written when somebody died; only for the owner."""
    for temporary in table.glob(f"vhost=*/date=*/.*{TEMPORARY}"):
        with suppress(OSError):
            temporary.unlink()
