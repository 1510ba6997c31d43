"""Parquet files of sealed archive segments: requested one at a time, in order, with retries."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.archive import service
from gateway.archive.archive_writer import PART_SIZE, POLL_INTERVAL_S, RETRY_DELAY_S, ArchiveWriter
from gateway.columnar.tables.iceberg_address import IcebergAddress
from gateway.columnar.tables.schema_files import SchemaFile
from gateway.config import Settings
from gateway.kernel.archives.archive import Archive, ArchiveRules
from gateway.kernel.events import Event
from gateway.kernel.journal.records.topology import PolicyRecord
from gateway.kernel.messages.chunks import chunk_heads
from gateway.kernel.messages.message import Message
from gateway.testing import MemoryBroker
from gateway.testing.broker import header_of
from tests.archiving.idle_worker import IdleWorker, SegmentFileStore


class ArchivingBroker:
    """A broker whose queues are archived in segments of one message, with its archive writer."""

    def __init__(
        self,
        tmp_path: Path,
        *,
        has_files: bool = True,
        target: IcebergAddress | None = None,
        schemas: Mapping[str, SchemaFile] | None = None,
    ) -> None:
        self.store = SegmentFileStore()
        self.broker = MemoryBroker(self.store)
        self.worker = IdleWorker()
        self.events: list[Event] = []
        kernel = self.broker.kernel
        kernel.archive_context.rules = ArchiveRules(segment_size=1)
        kernel.events.subscribe(self.events.append)
        self.touched = 0
        worker: Any = self.worker  # not a WorkerProcess
        ArchiveWriter(kernel, worker, target or tmp_path, self._touch, has_files=has_files, schemas=schemas or {})
        kernel.put_policy(PolicyRecord("/", "keep", False, ".*", "queues", 0, {"archive": True}))
        self.broker.commit()

    def _touch(self) -> None:
        self.touched += 1

    def publish(self, queue: str, body: bytes = b"body") -> Archive:
        vhost = self.broker.vhost
        vhost.declare_queue(queue, is_durable=True)
        vhost.publish(vhost.default_exchange, Message("", queue, header_of(), body))
        self.broker.commit()
        self.broker.commit()
        return next(archive for archive in vhost.archives if archive.record.name == queue)

    def archive_events(self) -> list[str]:
        return [event.name for event in self.events if event.name in ("archive.filed", "archive.failed")]


@pytest.fixture
def archiving(tmp_path: Path) -> ArchivingBroker:
    archiving = ArchivingBroker(tmp_path)
    archiving.store.put_into(tmp_path)
    return archiving


def test_a_segment_is_requested_by_path_and_truncated_when_written(archiving: ArchivingBroker, tmp_path: Path) -> None:
    archive = archiving.publish("orders")
    [head] = archiving.worker.heads
    assert head["path"] == str(tmp_path / f"{archive.record.id}-{0:020}.chunks")
    assert (head["do"], head["kind"], head["vhost"], head["queue"]) == ("table", "messages", "/", "orders")
    assert (head["from"], head["to"], head["table"]) == (0, 1, str(tmp_path / "archive"))
    assert head["stem"] == f"queue-orders-{archive.record.since_ms}"
    assert {"kind": "queue", "name": "orders", "queue": "orders"}.items() <= head["says"].items()
    assert len(archive.log) == 1
    archiving.worker.answer()
    assert (len(archive.log), archiving.archive_events(), archiving.touched) == (
        0,
        ["archive.filed"],
        1,
    )


def test_segments_are_written_one_at_a_time_in_order_and_no_archive_starves(
    archiving: ArchivingBroker,
) -> None:
    for queue in ("a", "a", "a", "b"):
        archiving.publish(queue)
    order = []
    for _ in range(4):
        order.append((archiving.worker.heads[-1]["queue"], archiving.worker.heads[-1]["from"]))
        archiving.worker.answer()
        archiving.broker.commit()
    assert order == [("a", 0), ("b", 0), ("a", 1), ("a", 2)]
    assert len(archiving.worker.requested) == 4


def test_the_next_segment_waits_until_the_truncation_is_durable(archiving: ArchivingBroker) -> None:
    for _ in range(2):
        archiving.publish("orders")
    archiving.worker.answer()
    assert [head["from"] for head in archiving.worker.heads] == [0]
    archiving.publish("orders")
    archiving.broker.commit()
    assert [head["from"] for head in archiving.worker.heads] == [0, 1]
    archiving.worker.answer("the disk is full")
    archiving.broker.advance(RETRY_DELAY_S)
    assert [head["from"] for head in archiving.worker.heads] == [0, 1, 1]


def test_a_failed_part_of_a_segment_is_retried_without_the_parts_before_it(tmp_path: Path) -> None:
    archiving = ArchivingBroker(tmp_path, has_files=False)
    archiving.broker.kernel.archive_context.rules = ArchiveRules(segment_size=2 * PART_SIZE)
    for _ in range(3):
        archiving.publish("orders", bytes(PART_SIZE - 1000))
    archiving.worker.answer()
    failed = archiving.worker.heads[-1]["from"]
    assert failed > 0
    archiving.worker.answer("the disk is full")
    archiving.broker.advance(RETRY_DELAY_S)
    assert [head["from"] for head in archiving.worker.heads] == [0, failed, failed]


def test_a_segment_of_an_iceberg_table_is_requested_with_its_identity(tmp_path: Path) -> None:
    address = IcebergAddress({"uri": "sqlite:////x"}, "gateway", "file:///x", 10)
    archiving = ArchivingBroker(tmp_path, target=address)
    archiving.store.put_into(tmp_path)
    archive = archiving.publish("orders")
    [head] = archiving.worker.heads
    assert (head["do"], head["table"], head["kind"], head["vhost"], head["queue"]) == (
        "rows", "archive", "messages", "/", "orders",
    )  # fmt: skip
    assert (head["source"], head["name"], head["since_ms"]) == ("queue", "orders", archive.record.since_ms)
    assert IcebergAddress.from_head(head["iceberg"]) == address


def test_a_segment_not_yet_in_a_file_is_polled(tmp_path: Path) -> None:
    archiving = ArchivingBroker(tmp_path)
    archiving.publish("orders")
    archiving.broker.advance(POLL_INTERVAL_S)
    assert archiving.worker.requested == []
    archiving.store.put_into(tmp_path)
    archiving.broker.advance(POLL_INTERVAL_S)
    assert len(archiving.worker.requested) == 1


def test_a_failed_write_is_retried_and_other_archives_proceed(archiving: ArchivingBroker) -> None:
    failing = archiving.publish("failing")
    archiving.publish("fine")
    archiving.worker.answer("the disk is full")
    assert archiving.worker.heads[-1]["queue"] == "fine"
    archiving.worker.answer()
    assert archiving.archive_events() == ["archive.failed", "archive.filed"]
    assert (len(failing.waiting), failing.failure) == (1, "the disk is full")
    archiving.broker.advance(RETRY_DELAY_S)
    assert archiving.worker.heads[-1]["queue"] == "failing"
    archiving.worker.answer()
    assert failing.failure == ""
    assert not failing.waiting


def test_without_files_a_segment_is_sent_by_pipe_in_parts(tmp_path: Path) -> None:
    archiving = ArchivingBroker(tmp_path, has_files=False)
    archiving.broker.kernel.archive_context.rules = ArchiveRules(segment_size=3 * PART_SIZE)
    for _ in range(4):
        archive = archiving.publish("orders", bytes(PART_SIZE - 1000))
    parts = []
    while archive.waiting:
        head, payload, _ = archiving.worker.requested[-1]
        assert head["path"] is None
        [*_, last] = chunk_heads(payload)
        assert last.end >= head["to"]
        parts.append((head["from"], head["to"]))
        archiving.worker.answer()
    assert parts[0][0] == 0
    assert parts[-1][1] == archive.log.first == 4
    assert [end for _, end in parts[:-1]] == [begin for begin, _ in parts[1:]]


def test_the_archive_of_a_deleted_virtual_host_is_no_longer_written(archiving: ArchivingBroker) -> None:
    archiving.publish("a")
    archiving.publish("b")
    archiving.broker.kernel.delete_vhost("/")
    archiving.worker.answer()
    assert (len(archiving.worker.requested), archiving.archive_events()) == (1, [])


def test_a_segment_of_a_typed_table_is_requested_with_its_schema_and_waits_without_one(tmp_path: Path) -> None:
    schema = SchemaFile("orders.json", "orders", "json-schema", "", b"{}")
    target = IcebergAddress({}, "gateway", "file:///tables", 10)
    archiving = ArchivingBroker(tmp_path, target=target, schemas={"orders": schema})
    archiving.store.put_into(tmp_path)
    kernel = archiving.broker.kernel
    kernel.archive_context.tables = frozenset({"orders", "gone"})
    for queue, table in (("q", "orders"), ("other", "gone")):
        kernel.put_policy(
            PolicyRecord("/", table, False, f"^{queue}$", "queues", 1, {"archive": True, "archive-table": table})
        )
        archiving.publish(queue)
    [head] = archiving.worker.heads
    assert SchemaFile.from_head(head["schema"]) == schema
    archiving.worker.answer()
    failed = [event for event in archiving.events if event.name == "archive.failed"]
    assert failed[0].details["error"] == "no schema in archive.schemas describes the table 'gone'"
    archiving.broker.clock.advance(RETRY_DELAY_S)
    assert len([event for event in archiving.events if event.name == "archive.failed"]) == 2


@pytest.mark.parametrize("has_arrow", [True, False])
def test_a_start_without_the_library_warns_of_archives_that_wait(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path, has_arrow: bool
) -> None:
    archiving = ArchivingBroker(tmp_path)
    archiving.publish("orders")
    monkeypatch.setattr(service, "has_arrow", lambda: has_arrow)
    worker: Any = archiving.worker
    kernel = archiving.broker.kernel
    service.ArchiveService(Settings(data=tmp_path), kernel, worker, lambda: None).start()
    assert ("archives wait: they need the Python library pyarrow" in caplog.text) is not has_arrow


@pytest.mark.parametrize("format", ["parquet", "iceberg"])
def test_a_start_with_iceberg_warns_of_files_in_the_other_format(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, format: str
) -> None:
    day = tmp_path / "archive/vhost=%2F/date=2026-11-28"
    day.mkdir(parents=True)
    (day / "_manifest.jsonl").touch()
    archiving = ArchivingBroker(tmp_path)
    worker: Any = archiving.worker
    settings = Settings.model_validate({"data": tmp_path, "archive": {"format": format}})
    service.ArchiveService(settings, archiving.broker.kernel, worker, lambda: None).start()
    assert ("not in the Iceberg table" in caplog.text) is (format == "iceberg")
