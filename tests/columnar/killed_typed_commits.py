"""Workers that kill themselves by SIGKILL at a point of the commits of a typed segment, for ``test_typed_kills``.

    python -m tests.columnar.killed_typed_commits DIRECTORY

reads one line for each worker (see ``killed_workers``): the point, the table whose commit it is of, the first offset,
the one after the last, and the largest number that the schema accepts.
"""

from pathlib import Path
from typing import Any, Final

from pyiceberg.catalog.sql import SqlCatalog

from gateway.columnar.encoding.worker import Worker
from gateway.columnar.iceberg import segment_commits
from gateway.columnar.iceberg.segment_commits import SegmentCommits
from gateway.worker_process.framing import Frame
from tests.columnar.iceberg_tables import address_in, request
from tests.columnar.killed_commits import after
from tests.columnar.killed_workers import serve
from tests.columnar.streams import chunk, message
from tests.columnar.typed_schemas import json_file

TYPED: Final = "orders"
DEAD: Final = "dead_letters"

#: Points of each of the two commits, in their order, and how to die there. ``killed_commits`` has more for one commit.
POINTS: Final = {
    "data files": after(segment_commits, "write_data_files"),
    "metadata": after(SqlCatalog, "_write_metadata"),
    "swap": after(SqlCatalog, "commit_table"),
    "hint": after(segment_commits, "write_hint"),
}


def die_in(table: str, point: str) -> None:
    """Die at a point of the commit to a table."""
    usual = SegmentCommits.file

    def file(self: SegmentCommits, name: str, *arguments: Any) -> Any:
        if name == table and point in POINTS:
            POINTS[point]()
        return usual(self, name, *arguments)

    SegmentCommits.file = file  # type: ignore[method-assign]


def _file(directory: Path, words: list[str]) -> object:
    point, table, first, end, most = words[0], words[1], *map(int, words[2:])
    die_in(table, point)
    schema = json_file({"type": "object", "properties": {"n": {"type": "integer", "maximum": most}}})
    chunks = chunk([message(b'{"n": %d}' % (number % 10)) for number in range(first, end)], first=first)
    return Worker().answer(Frame(request(address_in(directory), first, end, schema=schema.as_head()), chunks)).head


if __name__ == "__main__":
    serve(_file)
