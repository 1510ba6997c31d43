"""Arrow files of sealed stream segments: requested once each, for streams that are read in columnar form."""

from pathlib import Path

import pytest

from gateway.archive.stream_encoder import POLL_INTERVAL_S, RETRY_DELAY_S, StreamEncoder, arrow_path
from gateway.kernel.messages.message import Message
from gateway.kernel.streams.stream import Stream
from gateway.testing import MemoryBroker
from gateway.testing.broker import header_of
from tests.archiving.idle_worker import IdleWorker, SegmentFileStore


class EncodingBroker:
    """A broker with a stream and its encoder."""

    def __init__(self, directory: Path, *, wants_all: bool = False) -> None:
        self.directory = directory
        self.store = SegmentFileStore()
        self.store.put_into(directory)
        self.broker = MemoryBroker(self.store)
        self.worker = IdleWorker()
        self.encoding = StreamEncoder(self.broker.kernel, self.worker, wants_all=wants_all)  # type: ignore[arg-type]  # not a WorkerProcess

    def declare(self, name: str = "s") -> Stream:
        stream = self.broker.vhost.declare_queue(name, is_durable=True, arguments={"x-queue-type": "stream"})
        assert isinstance(stream, Stream)
        return stream

    def seal(self, stream: Stream, times: int = 1) -> None:
        """Give the stream sealed segments of one message each."""
        for _ in range(times):
            vhost = self.broker.vhost
            vhost.publish(vhost.default_exchange, Message("", stream.name, header_of(), b"body"))
            stream.seal()
            self.broker.commit()

    def path(self, stream: Stream, first: int) -> Path:
        return self.directory / f"{stream.log.id}-{first:020}.chunks"

    def requested(self) -> list[str]:
        return [Path(head["path"]).name[-8 - 20 : -7] for head in self.worker.heads]

    def encode(self) -> None:
        """Do the requested work and answer."""
        arrow_path(Path(self.worker.heads[-1]["path"])).write_bytes(b"")
        self.worker.answer()


@pytest.fixture
def reader(tmp_path: Path) -> EncodingBroker:
    reader = EncodingBroker(tmp_path)
    reader.encoding.start()
    return reader


def test_a_stream_without_columnar_readers_is_not_encoded(reader: EncodingBroker) -> None:
    reader.seal(reader.declare(), 3)
    assert reader.worker.requested == []


def test_the_segments_of_a_read_stream_are_encoded_one_at_a_time(reader: EncodingBroker) -> None:
    stream = reader.declare()
    reader.seal(stream, 2)
    for _ in range(3):
        reader.encoding.want(stream)
    assert len(reader.worker.requested) == 1
    reader.encode()
    reader.encode()
    assert len(reader.worker.requested) == 2
    reader.seal(stream)
    head, _, is_urgent = reader.worker.requested[2]
    assert (head["do"], head["vhost"], head["queue"], head["partition"]) == ("segment", "/", "s", 0)
    assert head["path"] == str(reader.path(stream, 2))
    assert not is_urgent


def test_every_stream_is_encoded_if_all_are_wanted(tmp_path: Path) -> None:
    reader = EncodingBroker(tmp_path, wants_all=True)
    reader.seal(reader.declare("before"))
    reader.encoding.start()
    assert [head["queue"] for head in reader.worker.heads] == ["before"]
    reader.encode()
    reader.seal(reader.declare("after"))
    assert reader.worker.heads[-1]["queue"] == "after"


def test_after_a_restart_only_missing_files_of_a_read_stream_are_encoded(tmp_path: Path) -> None:
    first = EncodingBroker(tmp_path)
    stream = first.declare()
    first.seal(stream, 3)
    arrow_path(first.path(stream, 1)).write_bytes(b"")
    first.encoding.start()
    while first.worker.heads[-1:] and len(first.worker.requested) < 3:
        first.encode()
        if not first.worker._answered:
            break
    assert [Path(head["path"]) for head in first.worker.heads] == [first.path(stream, 0), first.path(stream, 2)]


def test_a_segment_not_yet_in_a_file_is_polled(reader: EncodingBroker) -> None:
    stream = reader.declare()
    reader.encoding.want(stream)
    reader.store.directory = None
    reader.seal(stream)
    assert reader.worker.requested == []
    reader.store.put_into(reader.directory)
    reader.broker.advance(POLL_INTERVAL_S)
    assert len(reader.worker.requested) == 1


def test_a_segment_that_cannot_be_encoded_is_tried_again(reader: EncodingBroker) -> None:
    stream = reader.declare()
    reader.encoding.want(stream)
    reader.seal(stream)
    reader.worker.answer("no memory")
    reader.broker.advance(RETRY_DELAY_S)
    assert len(reader.worker.requested) == 2


def test_the_arrow_file_of_a_segment_truncated_meanwhile_is_removed(reader: EncodingBroker) -> None:
    stream = reader.declare()
    reader.encoding.want(stream)
    reader.seal(stream)
    path = arrow_path(reader.path(stream, 0))
    stream.truncate(1)
    reader.encode()
    assert not path.exists()


def test_a_deleted_stream_is_no_longer_encoded(reader: EncodingBroker) -> None:
    stream = reader.declare()
    reader.encoding.want(stream)
    reader.seal(stream, 2)
    reader.broker.vhost.delete_queue(stream)
    reader.encode()
    assert len(reader.worker.requested) == 1


# ---- Urgent requests
# ------------------------------------------------------------------------------------------------


def test_an_urgent_segment_is_encoded_first_and_its_caller_is_notified(reader: EncodingBroker) -> None:
    stream, archive_events = reader.declare(), []
    reader.seal(stream, 3)
    reader.encoding.encode_now(stream, stream.segments[2], archive_events.append)
    reader.encoding.encode_now(stream, stream.segments[2], archive_events.append)
    urgent = [(head["path"], is_urgent) for head, _, is_urgent in reader.worker.requested]
    assert urgent == [(str(reader.path(stream, 0)), False), (str(reader.path(stream, 2)), True)]
    assert archive_events == []
    reader.worker.answer()
    reader.encode()
    assert archive_events == [True, True]


def test_an_existing_or_impossible_file_is_reported_immediately(reader: EncodingBroker) -> None:
    stream, archive_events = reader.declare(), []
    reader.seal(stream)
    arrow_path(reader.path(stream, 0)).write_bytes(b"")
    reader.encoding.encode_now(stream, stream.segments[0], archive_events.append)
    reader.store.directory = None
    reader.encoding.encode_now(stream, stream.segments[0], archive_events.append)
    assert archive_events == [True, False]


def test_a_failure_is_reported_to_the_waiting_caller(reader: EncodingBroker) -> None:
    stream, archive_events = reader.declare(), []
    reader.seal(stream)
    reader.encoding.encode_now(stream, stream.segments[0], archive_events.append)
    reader.worker.answer("no memory")
    assert archive_events == [False]
