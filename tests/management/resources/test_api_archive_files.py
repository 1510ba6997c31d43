"""The files of archives over HTTP: within the user's permissions, and only files that were listed."""

import json
from pathlib import Path
from urllib.parse import urlencode

import pytest

from gateway.columnar.encoding.schema import MESSAGES, TRACE
from gateway.sql.catalogue import decoded_schema
from tests.management.console import Answer, Console

CONTENT = bytes(range(256)) * 8


@pytest.fixture
def console(tmp_path: Path) -> Console:
    """An API over an archive with one file of each of three sources, and a trace."""
    console = Console(archive=tmp_path)
    day = tmp_path / "archive/vhost=%2F/date=2026-01-31"
    day.mkdir(parents=True)
    sources = [("queue", "orders"), ("queue", "secret"), ("exchange", "orders")]
    times = {"first_ms": 1769817600000, "last_ms": 1769817601000}
    for number, (kind, name) in enumerate(sources):
        (day / f"{number}.parquet").write_bytes(CONTENT)
        line = {"file": f"{number}.parquet", "kind": kind, "name": name, "bytes": len(CONTENT), "rows": 1, **times}
        with (day / "_manifest.jsonl").open("a") as manifest:
            manifest.write(json.dumps(line) + "\n")
    (day / "unlisted.parquet").write_bytes(CONTENT)
    trace = tmp_path / "trace/vhost=%2F/date=2026-01-31"
    trace.mkdir(parents=True)
    (trace / "t.parquet").write_bytes(b"t")
    (trace / "_manifest.jsonl").write_text(json.dumps({"file": "t.parquet", "bytes": 1}) + "\n")
    console.gateway.add_user("reader", "reader", "/", ("", "", "^orders$"))
    console.gateway.add_user("watcher", "watcher", "/", ("", "", ""), "monitoring")
    return console


def ask(console: Console, path: str = "", user: str = "guest", **query: object) -> Answer:
    return console.ask("GET", f"/archive-files/%2F{path}?{urlencode(query)}", user=user)


def listed(console: Console, user: str = "guest", **query: object) -> list[dict[str, object]]:
    answer = ask(console, "/list", user, **{"source": "queue", "name": "orders", **query})
    assert answer.status == 200, answer.json
    found = answer.json["files"]
    assert isinstance(found, list)
    return found


def names(console: Console, user: str) -> list[tuple[str, str]]:
    return [(each["source"], each["name"]) for each in ask(console, user=user).json["archives"]]


def test_the_archives_that_the_user_may_read_are_listed(console: Console) -> None:
    assert names(console, "guest") == [("exchange", "orders"), ("queue", "orders"), ("queue", "secret"), ("trace", "")]
    assert names(console, "reader") == [("exchange", "orders"), ("queue", "orders")]
    assert names(console, "watcher") == [("trace", "")]


def test_an_archive_names_its_tables_and_their_columns(console: Console) -> None:
    assert [each["tables"] for each in ask(console, user="reader").json["archives"]] == [["archive"], ["archive"]]
    found = ask(console, "/columns", "reader", source="queue", name="orders", table="archive").json["schema"]
    assert decoded_schema(found) == MESSAGES
    events = ask(console, "/columns", "watcher", source="trace", table="trace").json["schema"]
    assert decoded_schema(events) == TRACE
    assert len(listed(console, "reader", table="archive")) == 1
    assert listed(console, "reader", table="orders") == []


def test_columns_of_other_archives_and_tables_are_refused(console: Console) -> None:
    assert ask(console, "/columns", "reader", source="queue", name="secret", table="archive").status == 403
    assert ask(console, "/columns", "reader", source="trace", table="trace").status == 401
    unknown = ask(console, "/columns", source="queue", name="orders", table="readings")
    assert unknown.status == 404
    assert unknown.json["reason"] == "no table 'readings' has messages of the queue orders"


def test_other_archives_are_refused(console: Console) -> None:
    refused = ask(console, "/list", "reader", source="queue", name="secret")
    assert (refused.status, refused.json["error"]) == (403, "access_refused")
    assert ask(console, "/list", "reader", source="trace").status == 401
    assert ask(console, "/list", "watcher", source="trace").json["files"][0]["bytes"] == 1
    assert ask(console, "/list", source="topic", name="orders").status == 400
    assert console.ask("GET", "/archive-files/none").status == 404


def test_a_part_of_a_listed_file_is_read(console: Console) -> None:
    [file] = listed(console, "reader")
    query = {"source": "queue", "name": "orders", "file": file["file"], "proof": file["proof"]}
    answer = ask(console, "/part", "reader", **query, position=10, size=20)
    assert (answer.status, answer.content) == (200, CONTENT[10:30])
    assert ask(console, "/part", **query, position=len(CONTENT) - 1, size=20).content == CONTENT[-1:]
    assert ask(console, "/part", **query, position=len(CONTENT), size=20).content == b""


def test_no_other_file_can_be_read(console: Console) -> None:
    [file] = listed(console)
    path, proof = Path(str(file["file"])), file["proof"]
    for other in (path.with_name("1.parquet"), path.with_name("unlisted.parquet"), Path("/etc/passwd")):
        forged = {"source": "queue", "name": "orders", "file": str(other), "proof": proof, "position": 0, "size": 9}
        assert ask(console, "/part", **forged).status == 410
    given = {"file": str(path), "position": 0, "size": 9}
    assert ask(console, "/part", source="exchange", name="orders", proof=proof, **given).status == 410
    assert ask(console, "/part", source="queue", name="orders", proof="é", **given).status == 410
    assert ask(console, "/part", "reader", source="queue", name="secret", proof=proof, **given).status == 403


def test_a_file_that_was_merged_meanwhile_is_gone(console: Console) -> None:
    [file] = listed(console)
    Path(str(file["file"])).unlink()
    query = {"source": "queue", "name": "orders", "file": file["file"], "proof": file["proof"]}
    answer = ask(console, "/part", **query, position=0, size=9)
    assert (answer.status, answer.json["error"]) == (410, "gone")


def test_files_of_other_times_are_left_out(console: Console) -> None:
    assert len(listed(console, since=1769817601000, until=1769817601001)) == 1
    assert listed(console, since=1769817601001) == []
    assert listed(console, until=1769817600000) == []
    [file] = listed(console)
    assert listed(console, after=file["file"]) == []


def test_a_replaced_file_is_not_listed(console: Console) -> None:
    day = console.archive / "archive/vhost=%2F/date=2026-01-31"
    (day / "m.parquet").write_bytes(b"m")
    merged = {"file": "m.parquet", "kind": "queue", "name": "orders", "bytes": 1, "replaces": ["0.parquet"]}
    with (day / "_manifest.jsonl").open("a") as opened:
        opened.write(json.dumps(merged) + "\n" + '{"file": "torn')
    assert [Path(str(file["file"])).name for file in listed(console)] == ["m.parquet"]


def test_a_file_that_is_gone_is_not_listed(console: Console) -> None:
    (console.archive / "archive/vhost=%2F/date=2026-01-31/0.parquet").unlink()
    assert listed(console) == []


def test_a_worker_that_fails_is_an_error(console: Console) -> None:
    console.worker.error = "no disk"
    answer = ask(console)
    assert (answer.status, answer.json["reason"]) == (503, "the archive cannot be read: no disk")
