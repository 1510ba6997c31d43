"""Workers that kill themselves by SIGKILL at a point of the commit of a segment, for ``test_iceberg_kills``.

    python -m tests.columnar.killed_commits DIRECTORY

reads one line for each worker (see ``killed_workers``): the point, the first offset and the one after the last.
"""

import os
import signal
from collections.abc import Callable
from inspect import getattr_static
from pathlib import Path
from typing import Any, Final

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table.update.snapshot import _SnapshotProducer

from gateway.columnar.encoding.worker import Worker
from gateway.columnar.iceberg import data_files, segment_commits
from gateway.worker_process.framing import Frame
from tests.columnar.iceberg_tables import address_in, request
from tests.columnar.killed_workers import serve
from tests.columnar.streams import chunk, message


def _die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(owner: Any, name: str) -> Callable[[], None]:
    return lambda: setattr(owner, name, _die)


def after(owner: Any, name: str) -> Callable[[], None]:
    usual = getattr(owner, name)

    def dies(*arguments: Any, **named: Any) -> None:
        usual(*arguments, **named)
        _die()

    is_static = isinstance(getattr_static(owner, name), staticmethod)
    return lambda: setattr(owner, name, staticmethod(dies) if is_static else dies)


#: The points, in their order. The first words name what is then complete.
POINTS: Final[dict[str, Callable[[], None]]] = {
    "nothing": before(segment_commits, "write_data_files"),
    "half a data file": before(data_files, "data_file"),
    "data files": after(segment_commits, "write_data_files"),
    "manifest": after(_SnapshotProducer, "_manifests"),
    "metadata": after(SqlCatalog, "_write_metadata"),
    "swap": after(SqlCatalog, "commit_table"),
    "hint": after(segment_commits, "write_hint"),
    "answer": lambda: None,
}


def _file(directory: Path, words: list[str]) -> object:
    point, first, end = words[0], int(words[1]), int(words[2])
    POINTS[point]()
    chunks = chunk([message(b"%d" % number) for number in range(first, end)], first=first)
    return Worker().answer(Frame(request(address_in(directory), first, end), chunks)).head


if __name__ == "__main__":
    serve(_file)
