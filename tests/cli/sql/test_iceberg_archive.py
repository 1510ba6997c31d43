"""Archives in Iceberg tables: their files are those of one source, and are read by parts."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from gateway.columnar.encoding.schema import MESSAGES
from gateway.columnar.encoding.worker import Worker
from gateway.columnar.reading.archive_files import MOST_FILES
from gateway.sql.archives import ArchiveTable
from gateway.worker_process.framing import Frame
from tests.columnar.iceberg_tables import address_in, request
from tests.columnar.streams import chunk, message


class WorkerApi:
    """The requests of a table, answered by a worker in this process."""

    def __init__(self, directory: Path) -> None:
        self.worker = Worker()
        self._address = address_in(directory)
        self.place = {"iceberg": self._address.as_head()}

    def file(self, first: int, end: int, **fields: Any) -> None:
        """File messages of an archive."""
        rows = chunk([message()] * (end - first), first=first)
        answer = self.worker.answer(Frame(request(self._address, first, end, **fields), rows))
        assert "error" not in answer.head, answer.head

    def ask(self, do: str, **fields: Any) -> Frame:
        """Send a request about the files."""
        answer = self.worker.answer(Frame({"do": do, "vhost": "/", "place": self.place, **fields}, b""))
        assert "error" not in answer.head, answer.head
        return answer

    def get(self, *path: str, query: Mapping[str, str] | None = None) -> Any:
        assert query is not None
        source = {"kind": query["source"], "name": query["name"]}
        times = {"since_ms": int(query["since"]), "until_ms": int(query["until"])}
        answer = self.ask("files", **source, **times, after=query["after"])
        return {"files": [{**each, "proof": ""} for each in json.loads(answer.payload)], "more": answer.head["more"]}

    def raw(self, *path: str, query: Mapping[str, str] | None = None) -> bytes:
        assert query is not None
        extent = {"position": int(query["position"]), "size": int(query["size"])}
        return self.ask("part", file=query["file"], **extent).payload


def rows(api: WorkerApi, name: str, rest: str = "") -> list[tuple[Any, ...]]:
    """Return the offsets of the archive of a queue."""
    connection = duckdb.connect()
    connection.register("archive", ArchiveTable(api, "/", "queue", name, MESSAGES))
    return connection.execute(f'SELECT "offset" FROM archive {rest} ORDER BY 1').fetchall()


def test_the_files_of_each_source_are_listed_and_read(tmp_path: Path) -> None:
    api = WorkerApi(tmp_path)
    api.file(0, 3)
    api.file(3, 5)
    api.file(0, 2, source="exchange", name="e", queue=None)
    api.file(0, 7, vhost="other")
    assert json.loads(api.ask("sources").payload) == [["exchange", "e"], ["queue", "q"]]
    assert rows(api, "q") == [(0,), (1,), (2,), (3,), (4,)]
    assert rows(api, "q", 'WHERE "offset" = 3') == [(3,)]
    assert rows(api, "q", "WHERE timestamp < '2000-01-01'") == []
    assert rows(api, "e") == []
    [first, second] = api.get(query={"source": "queue", "name": "q", "since": "0", "until": str(2**41), "after": ""})[
        "files"
    ]
    assert {(each["first"], each["next"], each["rows"]) for each in (first, second)} == {(0, 3, 3), (3, 5, 2)}
    assert MOST_FILES > 2


def test_a_table_that_does_not_exist_has_no_sources(tmp_path: Path) -> None:
    assert json.loads(WorkerApi(tmp_path).ask("sources").payload) == []


def test_a_removed_file_is_gone(tmp_path: Path) -> None:
    answer = WorkerApi(tmp_path).ask("part", file=f"file://{tmp_path}/none.parquet", position=0, size=10)
    assert (answer.head.get("is_gone"), answer.payload) == (True, b"")
