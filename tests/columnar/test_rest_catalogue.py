"""Tables of a REST catalogue: segments are filed once although answers are lost, and the commands maintain them."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog

from gateway.cli.main import main
from gateway.columnar.encoding.worker import Worker
from gateway.columnar.tables.iceberg_address import IcebergAddress
from gateway.worker_process.framing import Frame
from tests.columnar.iceberg_tables import address_in, query, request, rows_in
from tests.columnar.rest_catalogue import AFTER, BEFORE
from tests.columnar.streams import chunk, message
from tests.interop.broker import PROJECT
from tests.ports import free_port
from tests.waiting import wait_until


class Served:
    """A directory, and the catalogue of its tables as a child process."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> IcebergAddress:
        return address_in(self.directory, catalog=self.uri, warehouse=f"file://{self.directory}/iceberg")

    def start(self) -> None:
        arguments = (
            sys.executable,
            "-m",
            "tests.columnar.rest_catalogue",
            str(self.port),
            str(self.directory / "served"),
        )
        self._process = subprocess.Popen(arguments, cwd=PROJECT)
        wait_until(self._answers, "the catalogue does not listen")

    def _answers(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None

    def fail(self, fault: str) -> None:
        """Let the next commit fail."""
        (self.directory / "served" / "fault").write_text(fault)

    def file(self, worker: Worker, first: int, end: int) -> str:
        """File a segment; return the error, empty if there is none."""
        rows = chunk([message()] * (end - first), first=first)
        return str(worker.answer(Frame(request(self.address, first, end), rows)).head.get("error", ""))

    def offsets(self) -> list[int]:
        """Return the offsets that a reader finds which asks the catalogue."""
        table = load_catalog("reader", type="rest", uri=self.uri).load_table(("gateway", "archive"))
        found: list[Any] = table.scan().to_arrow()["offset"].to_pylist()
        return sorted(found)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    served.start()
    yield served
    served.kill()


def test_a_segment_is_filed_once_although_an_answer_is_lost(served: Served) -> None:
    worker = Worker()
    assert served.file(worker, 0, 10) == ""
    for first, fault in ((10, BEFORE), (20, AFTER)):
        served.fail(fault)
        assert served.file(worker, first, first + 10) != ""
        assert served.offsets() == list(range(first if fault == BEFORE else first + 10))
        assert served.file(worker, first, first + 10) == ""
        assert served.offsets() == list(range(first + 10))
    assert rows_in(served.directory).num_rows == 30  # by the hint, without the catalogue


def test_the_table_is_created_once_although_the_answer_is_lost(served: Served) -> None:
    served.fail(AFTER)
    assert served.file(Worker(), 0, 5) != ""
    assert served.file(Worker(), 0, 5) == ""
    assert served.offsets() == list(range(5))


def test_a_catalogue_that_was_away_gets_the_segments_later(served: Served) -> None:
    worker = Worker()
    assert served.file(worker, 0, 5) == ""
    served.kill()
    assert "Connection refused" in served.file(worker, 5, 10)
    served.start()
    assert served.file(worker, 5, 10) == ""
    assert served.offsets() == list(range(10))


def test_the_commands_maintain_a_table(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    worker = Worker()
    for first in range(3):
        assert served.file(worker, first, first + 1) == ""
    settings = (
        "archive.format=iceberg",
        f"archive.catalog={served.uri}",
        f"archive.warehouse={served.address.location}",
    )
    given = ["archive", "--data", str(served.directory), *(word for each in settings for word in ("--set", each))]
    for command in (["status"], ["compact"], ["expire", "--rows", "30m", "--snapshots", "30m"], ["tidy"]):
        assert main([*given, *command]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("archive rows=3 files=3 bytes=")
    assert shown[1:] == [
        "archive: 3 files merged into 1",
        "archive: 1 files of rows expired",
        "archive: 0 snapshots expired",
        "archive: 0 files removed",
    ]
    assert query(served.directory, "count(*)") == [(0,)]
    served.kill()
    (served.directory / "served" / "served.db").unlink()
    served.start()
    assert "gateway archive register" in served.file(Worker(), 3, 4)
    assert main([*given, "register", "archive"]) == 0
    assert served.file(worker, 3, 4) == ""
    assert served.offsets() == [3]
