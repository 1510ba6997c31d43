"""Workers that kill themselves by SIGKILL at a point of the commit of a segment, for ``test_iceberg_kills``.

    python -m tests.columnar.killed_commits DIRECTORY

reads one line for each worker: the point, the first offset and the one after the last. Each worker is a fork of this
process, which has imported what it needs. The answer is a line, ``killed`` or what the worker has answered.
"""

import os
import signal
import sys
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


def _file(directory: Path, point: str, first: int, end: int, answers: int) -> None:
    POINTS[point]()
    chunks = chunk([message(b"%d" % number) for number in range(first, end)], first=first)
    answer = Worker().answer(Frame(request(address_in(directory), first, end), chunks))
    os.write(answers, f"{answer.head}\n".encode())


def main() -> None:
    """Start a worker for each line of the input, and print its answer or its end."""
    directory = Path(sys.argv[1])
    for line in sys.stdin:
        point, first, end = line.strip().split(";")
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            _file(directory, point, int(first), int(end), sys.stdout.fileno())
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            print("killed", flush=True)


if __name__ == "__main__":
    main()
