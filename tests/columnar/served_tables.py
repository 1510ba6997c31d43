"""Iceberg tables whose catalogue is a child process, ``rest_catalogue``."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyiceberg.catalog import load_catalog

from gateway.columnar.encoding.worker import Worker
from gateway.columnar.tables.iceberg_address import IcebergAddress
from gateway.worker_process.framing import Frame
from tests.columnar.iceberg_tables import address_in, request
from tests.columnar.streams import chunk, message
from tests.interop.broker import PROJECT
from tests.ports import free_port
from tests.waiting import wait_until


class ServedTables:
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


@contextmanager
def serving(directory: Path) -> Iterator[ServedTables]:
    """Run the catalogue of a directory's tables."""
    served = ServedTables(directory)
    served.start()
    try:
        yield served
    finally:
        served.kill()
