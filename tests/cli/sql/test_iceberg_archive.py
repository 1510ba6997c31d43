"""Archives in Iceberg tables: their files are those of one source, and are read by parts."""

import json
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from gateway.columnar.encoding.schema import MESSAGES
from gateway.columnar.encoding.worker import Worker
from gateway.columnar.iceberg.catalogue import open_catalogue
from gateway.columnar.reading.archive_files import MOST_FILES
from gateway.sql.archives import ArchiveTable
from gateway.sql.query import SqlQuery
from gateway.worker_process.framing import Frame
from tests.columnar.iceberg_tables import address_in, request
from tests.columnar.streams import chunk, message
from tests.columnar.typed_schemas import json_file


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

    def file_typed(self, first: int, properties: dict[str, Any], *bodies: bytes, **fields: Any) -> None:
        """File messages of an archive whose bodies have a schema with these properties."""
        schema = json_file({"type": "object", "properties": properties})
        head = request(self._address, first, first + len(bodies), schema=schema.as_head(), **fields)
        answer = self.worker.answer(Frame(head, chunk([message(body) for body in bodies], first=first)))
        assert "error" not in answer.head, answer.head

    def ask(self, do: str, **fields: Any) -> Frame:
        """Send a request about the files."""
        answer = self.worker.answer(Frame({"do": do, "vhost": "/", "place": self.place, **fields}, b""))
        assert "error" not in answer.head, answer.head
        return answer

    def get(self, *path: str, query: Mapping[str, str] | None = None) -> Any:
        if path[0] == "pipeline":
            return {"queues": []}
        if query is None:
            tables: dict[tuple[str, str], list[str]] = {}
            for kind, name, table in json.loads(self.ask("sources").payload):
                tables.setdefault((kind, name), []).append(table)
            return {"archives": [{"source": kind, "name": name, "tables": tables[kind, name]} for kind, name in tables]}
        source = {"kind": query["source"], "name": query["name"], "table": query.get("table", "")}
        if path[-1] == "columns":
            return {"schema": b64encode(self.ask("columns", **source).payload).decode()}
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


def select(api: WorkerApi, sql: str) -> list[tuple[Any, ...]]:
    """Run a query over all tables of the virtual host."""
    with SqlQuery(api, "/", sql, "500MB", lambda: ()).run() as (_, found):
        return list(found)


ORDER = {"id": {"type": "integer"}, "customer": {"type": "object", "properties": {"name": {"type": "string"}}}}
CITY = {"name": {"type": "string"}, "city": {"type": "string"}}
LATER_ORDER = {**ORDER, "customer": {"type": "object", "properties": CITY}, "note": {"type": "string"}}


def test_an_archive_has_the_messages_of_its_typed_tables_and_dead_letters(tmp_path: Path) -> None:
    api = WorkerApi(tmp_path)
    api.file(0, 2)
    api.file_typed(2, ORDER, b'{"id": 2}', b"no JSON", b'{"id": 4}')
    assert rows(api, "q") == [(0,), (1,), (2,), (3,), (4,)]
    assert rows(api, "q", "WHERE decode(body) = 'no JSON'") == [(3,)]
    assert select(api, "show tables") == [
        ('archive."q"', "archive of queue"),
        ("dead_letters", "messages that typed tables refuse"),
        ('typed."orders"', "typed messages"),
    ]


def test_a_typed_table_has_columns_that_came_later_for_all_messages(tmp_path: Path) -> None:
    api = WorkerApi(tmp_path)
    api.file_typed(0, ORDER, b'{"id": 7, "customer": {"name": "Ann"}}')
    api.file_typed(1, LATER_ORDER, b'{"id": 8, "customer": {"name": "Bo", "city": "Ulm"}, "note": "new"}')
    api.file_typed(0, ORDER, b'{"id": 9}', source="exchange", name="e")
    asked = 'select source_name, "offset", id, customer.name, customer.city, note from typed.orders order by id'
    assert select(api, asked) == [
        ("q", 0, 7, "Ann", None, None),
        ("q", 1, 8, "Bo", "Ulm", "new"),
        ("e", 0, 9, None, None, None),
    ]
    assert select(api, "select sum(id) from typed.orders where note = 'new' and \"offset\" > 0") == [(8,)]


def test_dead_letters_have_their_table_and_reason(tmp_path: Path) -> None:
    api = WorkerApi(tmp_path)
    api.file_typed(0, ORDER, b"no JSON", b'{"id": 1}', b'{"id": "x"}')
    found = select(api, 'select "offset", "table", reason, decode(body) from dead_letters order by 1')
    assert [(at, table, body) for at, table, _, body in found] == [
        (0, "orders", "no JSON"),
        (2, "orders", '{"id": "x"}'),
    ]
    assert all(reason for _, _, reason, _ in found)


def test_foreign_tables_of_the_namespace_are_left_out(tmp_path: Path) -> None:
    api = WorkerApi(tmp_path)
    api.file(0, 2)
    catalogue = open_catalogue(address_in(tmp_path))
    catalogue.create_table("gateway.foreign", pa.schema([("vhost", pa.string()), ("n", pa.int64())]))
    assert rows(api, "q") == [(0,), (1,)]
    assert select(api, "show tables") == [('archive."q"', "archive of queue")]


def test_the_files_of_each_source_are_listed_and_read(tmp_path: Path) -> None:
    api = WorkerApi(tmp_path)
    api.file(0, 3)
    api.file(3, 5)
    api.file(0, 2, source="exchange", name="e", queue=None)
    api.file(0, 7, vhost="other")
    assert json.loads(api.ask("sources").payload) == [["exchange", "e", "archive"], ["queue", "q", "archive"]]
    assert rows(api, "q") == [(0,), (1,), (2,), (3,), (4,)]
    assert rows(api, "q", 'WHERE "offset" = 3') == [(3,)]
    assert rows(api, "q", "WHERE timestamp < '2000-01-01'") == []
    assert rows(api, "e") == []
    [first, second] = api.get(
        "list", query={"source": "queue", "name": "q", "since": "0", "until": str(2**41), "after": ""}
    )["files"]
    assert {(each["first"], each["next"], each["rows"]) for each in (first, second)} == {(0, 3, 3), (3, 5, 2)}
    assert MOST_FILES > 2


def test_a_table_that_does_not_exist_has_no_sources(tmp_path: Path) -> None:
    assert json.loads(WorkerApi(tmp_path).ask("sources").payload) == []


def test_a_removed_file_is_gone(tmp_path: Path) -> None:
    answer = WorkerApi(tmp_path).ask("part", file=f"file://{tmp_path}/none.parquet", position=0, size=10)
    assert (answer.head.get("is_gone"), answer.payload) == (True, b"")
