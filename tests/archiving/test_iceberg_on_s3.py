"""Iceberg tables in an object store: a server of S3 in a process of its own."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from pyiceberg.table import Table

from gateway.columnar.encoding.worker import Worker
from gateway.columnar.iceberg.catalogue import open_catalogue
from gateway.columnar.tables.iceberg_address import IcebergAddress
from gateway.worker_process.framing import Frame
from tests.columnar.iceberg_tables import address_in, request
from tests.columnar.streams import chunk, message
from tests.ports import free_port
from tests.waiting import wait_until

KEYS = "s3.access-key-id=key,s3.secret-access-key=secret,s3.region=us-east-1"


def _put_bucket(url: str) -> bool:
    try:
        with urlopen(Request(f"{url}/archive", method="PUT"), timeout=5) as answer:
            return bool(answer.status == 200)
    except URLError:
        return False


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """A server of S3 with the bucket ``archive``; return its URL."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: _put_bucket(url), "the server of S3 does not start", timeout_s=60, interval_s=0.2)
        yield url
        server.kill()


def address_on(s3: str, directory: Path, properties: str = "") -> IcebergAddress:
    """Return the address of tables on a server, with a catalogue in a local directory."""
    given = f"{KEYS},s3.endpoint={s3}{properties}"
    catalogue = f"sqlite:///{directory}/catalog.db"
    return address_in(
        directory, warehouse=f"s3://archive/{directory.name}", catalog=catalogue, catalog_properties=given
    )


def file(worker: Worker, address: IcebergAddress, first: int, end: int) -> list[str]:
    chunks = chunk([message(b"%d" % number) for number in range(first, end)], first=first)
    head = worker.answer(Frame(request(address, first, end), chunks)).head
    assert "error" not in head, head
    return list(head["files"])


def table_at(address: IcebergAddress) -> Table:
    return open_catalogue(address).load_table("gateway.archive")


def test_segments_are_in_an_object_store_exactly_once(s3: str, tmp_path: Path) -> None:
    address = address_on(s3, tmp_path)
    worker = Worker()
    assert file(worker, address, 0, 10)[0].startswith(f"s3://archive/{tmp_path.name}/archive/data/")
    for first in (10, 20):
        assert file(worker, address, first, first + 10)
        assert file(Worker(), address, first, first + 10) == []
    found = table_at(address)
    assert sorted(found.scan().to_arrow()["offset"].to_pylist()) == list(range(30))
    hint = found.io.new_input(f"{found.location()}/metadata/version-hint.text")
    with hint.open() as stream:
        assert f"/{stream.read().decode()}.metadata.json" in found.metadata_location


def test_a_store_that_does_not_answer_is_an_error_and_the_repetition_completes(s3: str, tmp_path: Path) -> None:
    address = address_on(s3, tmp_path)
    file(Worker(), address, 0, 10)
    away = address_on(f"http://127.0.0.1:{free_port()}", tmp_path, ",s3.connect-timeout=1,s3.request-timeout=1")
    head = Worker().answer(Frame(request(away, 10, 20), chunk([message()] * 10, first=10))).head
    assert "127.0.0.1" in head["error"] or "CONNECTION" in head["error"]
    assert file(Worker(), address, 10, 20)
    assert table_at(address).scan().count() == 20
