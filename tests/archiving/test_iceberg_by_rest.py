"""Iceberg tables in a REST catalogue."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.columnar.encoding.worker import Worker
from gateway.columnar.iceberg.catalogue import SCHEMAS, open_catalogue, open_table
from gateway.columnar.iceberg.compaction import Compacted, compact
from gateway.columnar.tables.iceberg_address import IcebergAddress
from gateway.worker_process.framing import Frame
from tests.archiving.rest_catalogue import RestCatalogue, served
from tests.columnar.iceberg_tables import address_in, request, rows_in
from tests.columnar.streams import chunk, message


class Archive:
    """A table in a REST catalogue, and the worker of a broker."""

    def __init__(self, directory: Path, url: str, catalogue: RestCatalogue) -> None:
        self.directory = directory
        self.catalogue = catalogue
        self.address: IcebergAddress = address_in(directory, catalog=url)
        self.worker = Worker()

    def file(self, first: int, end: int) -> dict[str, object]:
        chunks = chunk([message(b"%d" % number) for number in range(first, end)], first=first)
        return self.worker.answer(Frame(request(self.address, first, end), chunks)).head

    def offsets(self) -> list[int]:
        return sorted(rows_in(self.directory)["offset"].to_pylist())


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    catalogue = RestCatalogue(f"sqlite:///{tmp_path}/rest.db", f"file://{tmp_path}/elsewhere")
    with served(catalogue) as url:
        yield Archive(tmp_path, url, catalogue)


def test_segments_are_committed_exactly_once(archive: Archive) -> None:
    for first in (0, 10, 20):
        assert archive.file(first, first + 10)["files"]
        archive.worker = Worker()
        assert archive.file(first, first + 10)["files"] == []
    assert archive.offsets() == list(range(30))


def test_a_commit_whose_answer_is_lost_is_found(archive: Archive) -> None:
    archive.file(0, 10)
    archive.catalogue.lost_answers = 1
    assert "error" in archive.file(10, 20)
    assert archive.file(10, 20)["files"] == []
    assert archive.offsets() == list(range(20))


def test_writers_that_are_not_first_try_again(archive: Archive) -> None:
    archive.file(0, 10)
    archive.file(10, 20)
    catalogue = open_catalogue(archive.address)
    running = compact(
        catalogue, open_table(catalogue, archive.address, "archive", SCHEMAS["archive"]), 1 << 20, 1 << 20
    )
    archive.file(20, 30)
    assert list(running) == [Compacted(2, 1)]
    assert "error" not in archive.file(30, 40)
    assert archive.offsets() == list(range(40))
