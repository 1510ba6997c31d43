"""``gateway archive``: shows and maintains Iceberg tables."""

import json
from pathlib import Path

import pytest

from gateway.cli.exits import DATA_ERROR, UNAVAILABLE, USAGE
from gateway.cli.main import main
from gateway.columnar.encoding.parquet import Source, write_table
from gateway.columnar.encoding.schema import MESSAGES
from gateway.columnar.encoding.worker import Worker
from gateway.columnar.tables.manifest import KnownNames
from gateway.columnar.tables.schema_files import schema_files
from gateway.worker_process.framing import Frame
from tests.columnar.iceberg_tables import address_in, query, request
from tests.columnar.streams import chunk, message, pieces


def run(directory: Path, *arguments: str, settings: tuple[str, ...] = ("archive.format=iceberg",)) -> int:
    given = [word for setting in settings for word in ("--set", setting)]
    return main(["archive", "--data", str(directory), *given, *arguments])


def file(directory: Path, count: int) -> None:
    """File segments of one message."""
    worker = Worker()
    for number in range(count):
        answer = worker.answer(
            Frame(request(address_in(directory), number, number + 1), chunk([message()], first=number))
        )
        assert "error" not in answer.head, answer.head


def test_a_table_is_shown_compacted_expired_and_tidied(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file(tmp_path, 3)
    assert run(tmp_path, "status") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("archive rows=3 files=3 bytes=")
    assert " snapshots=3 metadata=file:///" in shown
    assert run(tmp_path, "compact") == 0
    assert run(tmp_path, "expire", "--rows", "30m", "--snapshots", "30m") == 0
    assert run(tmp_path, "tidy") == 0
    assert capsys.readouterr().out.splitlines() == [
        "archive: 3 files merged into 1",
        "archive: 1 files of rows expired",
        "archive: 0 snapshots expired",
        "archive: 0 files removed",
    ]
    assert query(tmp_path, "count(*)") == [(0,)]


def test_a_parquet_archive_is_adopted_and_a_lost_table_registered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Source(tmp_path / "archive", "/", "queue-q-1", {"kind": "queue", "name": "q", "queue": "q"})
    write_table(source, MESSAGES, pieces([chunk([message()] * 10)]), KnownNames())
    assert run(tmp_path, "adopt") == 0
    assert capsys.readouterr().out.splitlines() == [
        "archive/vhost=%2F/date=2023-11-14: 1 files adopted",
        f"{tmp_path}/trace: no archive in the Parquet format",
    ]
    (tmp_path / "iceberg/catalog.db").unlink()
    assert run(tmp_path, "register", "archive") == 0
    assert "archive: registered file:///" in capsys.readouterr().out
    assert query(tmp_path, "count(*), min(source_name)") == [(10, "q")]


def test_commands_without_anything_to_do_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "status") == 0
    assert run(tmp_path, "adopt") == 0
    assert capsys.readouterr().out.splitlines() == [
        "no table yet: the first segment that is filed creates it",
        f"{tmp_path}/archive: no archive in the Parquet format",
        f"{tmp_path}/trace: no archive in the Parquet format",
    ]


@pytest.mark.parametrize(
    ("arguments", "settings", "code", "error"),
    [
        (("status",), (), DATA_ERROR, 'archive.format: must be "iceberg" for this command'),
        (("expire",), ("archive.format=iceberg",), USAGE, "--rows or --snapshots is required"),
        (("expire", "--rows", "soon"), ("archive.format=iceberg",), USAGE, "'soon' is not an age such as 90d"),
        (("tidy", "--grace", "5m"), ("archive.format=iceberg",), USAGE, "--grace must be at least 30m"),
        (("register", "trace"), ("archive.format=iceberg",), UNAVAILABLE, "has no table"),
        (
            ("status",),
            ("archive.format=iceberg", 'archive.catalog="nonsense://h/db"'),
            UNAVAILABLE,
            "nonsense",
        ),
    ],
)
def test_a_mistake_is_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    settings: tuple[str, ...],
    code: int,
    error: str,
) -> None:
    assert run(tmp_path, *arguments, settings=settings) == code
    assert error in capsys.readouterr().err


def test_a_schema_is_inferred_from_the_bodies_of_an_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bodies = [b'{"n": 1, "s": null}', b'{"n": 2.5, "s": "x"}', b"junk"]
    chunks = chunk([message(body) for body in bodies])
    assert "error" not in Worker().answer(Frame(request(address_in(tmp_path), 0, 3), chunks)).head
    assert run(tmp_path, "infer", "--queue", "q") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["properties"] == {"n": {"type": "number"}, "s": {"type": ["null", "string"]}}
    assert printed.err == "1 samples are left out: not JSON: Expecting value: line 1 column 1 (char 0)\n"
    assert run(tmp_path, "infer", "--exchange", "q") == UNAVAILABLE
    assert "there are no samples" in capsys.readouterr().err


def test_a_schema_is_inferred_from_lines_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "samples").write_text('{"n": 1}\n\n{"n": null}\n{"n": "x"}\n')
    assert run(tmp_path, "infer", "--samples", str(tmp_path / "samples"), "--rows", "2") == 0
    assert json.loads(capsys.readouterr().out)["properties"] == {"n": {"type": ["integer", "null"]}}
    assert run(tmp_path, "infer") == USAGE
    assert run(tmp_path, "infer", "--queue", "q", "--table", "nowhere") == USAGE
    assert run(tmp_path, "infer", "--queue", "q") == UNAVAILABLE
    assert "the table archive does not exist" in capsys.readouterr().err


def test_typed_tables_and_dead_letters_are_maintained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas/orders.json").write_text('{"type": "object"}')
    settings = ("archive.format=iceberg", f'archive.schemas="{tmp_path}/schemas"')
    schema = schema_files(tmp_path / "schemas")["orders"].as_head()
    for number in range(2):
        chunks = chunk([message(b"{}"), message(b"x")], first=number * 2)
        head = request(address_in(tmp_path), number * 2, number * 2 + 2, schema=schema)
        assert "error" not in Worker().answer(Frame(head, chunks)).head
    assert run(tmp_path, "status", settings=settings) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()] == [
        ["dead_letters", "rows=2"],
        ["orders", "rows=2"],
    ]
    assert run(tmp_path, "compact", "--table", "orders", settings=settings) == 0
    assert capsys.readouterr().out == "orders: 2 files merged into 1\n"
