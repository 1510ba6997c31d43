"""From sealed segments of streams to requests for Arrow files: of streams that are read as columns, each once."""

from pathlib import Path

import pytest

from gateway.archive.stream_encoder import POLL_INTERVAL_S, RETRY_DELAY_S, StreamEncoder, arrow_path
from gateway.kernel.messages.message import Message
from gateway.kernel.streams.stream import Stream
from gateway.testing import MemoryBroker
from gateway.testing.broker import header_of
from tests.archiving.idle_worker import FilingStore, IdleWorker


class Reader:
    """A broker with a stream, and who has it encoded."""

    def __init__(self, directory: Path, *, wants_all: bool = False) -> None:
        self.directory = directory
        self.store = FilingStore()
        self.store.put_into(directory)
        self.broker = MemoryBroker(self.store)
        self.worker = IdleWorker()
        self.encoding = StreamEncoder(self.broker.kernel, self.worker, wants_all=wants_all)  # type: ignore[arg-type]  # not a WorkerProcess

    def declare(self, name: str = "s") -> Stream:
        stream = self.broker.vhost.declare_queue(name, is_durable=True, arguments={"x-queue-type": "stream"})
        assert isinstance(stream, Stream)
        return stream

    def seal(self, stream: Stream, times: int = 1) -> None:
        """Let the stream have sealed segments of one message each."""
        for _ in range(times):
            vhost = self.broker.vhost
            vhost.publish(vhost.default_exchange, Message("", stream.name, header_of(), b"body"))
            stream.seal()
            self.broker.commit()

    def path(self, stream: Stream, first: int) -> Path:
        return self.directory / f"{stream.log.id}-{first:020}.chunks"

    def asked(self) -> list[str]:
        return [Path(head["path"]).name[-8 - 20 : -7] for head in self.worker.heads]

    def encode(self) -> None:
        """Do what the worker is asked, and answer."""
        arrow_path(Path(self.worker.heads[-1]["path"])).write_bytes(b"")
        self.worker.answer()


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    reader = Reader(tmp_path)
    reader.encoding.start()
    return reader


def test_a_stream_that_nobody_reads_is_not_encoded(reader: Reader) -> None:
    reader.seal(reader.declare(), 3)
    assert reader.worker.asked == []


def test_a_stream_that_is_read_is_encoded_one_segment_at_a_time_and_goes_on_so(reader: Reader) -> None:
    stream = reader.declare()
    reader.seal(stream, 2)
    for _ in range(3):
        reader.encoding.want(stream)
    assert len(reader.worker.asked) == 1
    reader.encode()
    reader.encode()
    assert len(reader.worker.asked) == 2
    reader.seal(stream)
    head, _, is_urgent = reader.worker.asked[2]
    assert (head["do"], head["vhost"], head["queue"], head["partition"]) == ("segment", "/", "s", 0)
    assert head["path"] == str(reader.path(stream, 2))
    assert not is_urgent


def test_every_stream_is_encoded_if_all_are_wanted(tmp_path: Path) -> None:
    reader = Reader(tmp_path, wants_all=True)
    reader.seal(reader.declare("before"))
    reader.encoding.start()
    assert [head["queue"] for head in reader.worker.heads] == ["before"]
    reader.encode()
    reader.seal(reader.declare("after"))
    assert reader.worker.heads[-1]["queue"] == "after"


def test_after_a_restart_a_stream_that_was_read_is_still_wanted_and_nothing_is_made_twice(tmp_path: Path) -> None:
    first = Reader(tmp_path)
    stream = first.declare()
    first.seal(stream, 3)
    arrow_path(first.path(stream, 1)).write_bytes(b"")
    first.encoding.start()
    while first.worker.heads[-1:] and len(first.worker.asked) < 3:
        first.encode()
        if not first.worker._answered:
            break
    assert [Path(head["path"]) for head in first.worker.heads] == [first.path(stream, 0), first.path(stream, 2)]


def test_a_segment_in_no_file_yet_is_looked_for_again(reader: Reader) -> None:
    stream = reader.declare()
    reader.encoding.want(stream)
    reader.store.directory = None
    reader.seal(stream)
    assert reader.worker.asked == []
    reader.store.put_into(reader.directory)
    reader.broker.advance(POLL_INTERVAL_S)
    assert len(reader.worker.asked) == 1


def test_a_segment_that_cannot_be_encoded_is_tried_again(reader: Reader) -> None:
    stream = reader.declare()
    reader.encoding.want(stream)
    reader.seal(stream)
    reader.worker.answer("no memory")
    reader.broker.advance(RETRY_DELAY_S)
    assert len(reader.worker.asked) == 2


def test_a_file_of_a_segment_that_is_gone_meanwhile_goes_too(reader: Reader) -> None:
    stream = reader.declare()
    reader.encoding.want(stream)
    reader.seal(stream)
    path = arrow_path(reader.path(stream, 0))
    stream.truncate(1)
    reader.encode()
    assert not path.exists()


def test_a_deleted_stream_is_not_encoded_any_more(reader: Reader) -> None:
    stream = reader.declare()
    reader.encoding.want(stream)
    reader.seal(stream, 2)
    reader.broker.vhost.delete_queue(stream)
    reader.encode()
    assert len(reader.worker.asked) == 1


# ---- For somebody who waits -----------------------------------------------------------------------------------------


def test_who_waits_for_a_segment_goes_first_and_hears_when_it_is_there(reader: Reader) -> None:
    stream, told = reader.declare(), []
    reader.seal(stream, 3)
    reader.encoding.encode_now(stream, stream.segments[2], told.append)
    reader.encoding.encode_now(stream, stream.segments[2], told.append)
    urgent = [(head["path"], is_urgent) for head, _, is_urgent in reader.worker.asked]
    assert urgent == [(str(reader.path(stream, 0)), False), (str(reader.path(stream, 2)), True)]
    assert told == []
    reader.worker.answer()
    reader.encode()
    assert told == [True, True]


def test_what_is_there_or_cannot_be_is_told_at_once(reader: Reader) -> None:
    stream, told = reader.declare(), []
    reader.seal(stream)
    arrow_path(reader.path(stream, 0)).write_bytes(b"")
    reader.encoding.encode_now(stream, stream.segments[0], told.append)
    reader.store.directory = None
    reader.encoding.encode_now(stream, stream.segments[0], told.append)
    assert told == [True, False]


def test_a_failure_is_told_to_who_waits(reader: Reader) -> None:
    stream, told = reader.declare(), []
    reader.seal(stream)
    reader.encoding.encode_now(stream, stream.segments[0], told.append)
    reader.worker.answer("no memory")
    assert told == [False]
