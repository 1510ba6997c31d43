"""Reading sealed segments: the batches of their files are copied and sent as fast as the client reads."""

import itertools
from collections.abc import Iterable
from hashlib import shake_128
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from gateway.columnar.encoding.worker import Worker
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.streams.stream import Stream
from gateway.management.http.downloads import PIECE_SIZE
from gateway.management.http.response_stream import ResponseStream
from gateway.management.web.limits import HttpLimits
from gateway.worker_process.framing import Frame
from tests.management.console import Answer, Console, parsed

#: Messages in the sealed segment: several batches of the file and pieces of a response.
SEGMENT = 20_000

READ = "/pipeline/%2F/read?queue=orders"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The path of the segment's file."""
    return tmp_path / "0.arrow"


@pytest.fixture
def console(file: Path, monkeypatch: pytest.MonkeyPatch) -> Console:
    """A console of a broker with a stream of a sealed segment with a file, followed by ten messages."""
    console = Console()
    vhost = console.gateway.vhost
    stream = vhost.declare_queue("orders", is_durable=True, arguments={"x-queue-type": "stream"})
    assert isinstance(stream, Stream)
    publish(console, range(SEGMENT))
    stream.seal()
    console.gateway.settle()
    chunks = file.with_suffix(".chunks")
    chunks.write_bytes(stream.read(0, 2**30) or b"")
    publish(console, range(SEGMENT, SEGMENT + 10))
    console.gateway.settle()
    monkeypatch.setattr(console.gateway.store, "segment_path", lambda stream_id, first: chunks)
    head = {"do": "segment", "vhost": "/", "queue": "orders", "partition": 0, "path": str(chunks)}
    assert "error" not in Worker().answer(Frame(head, b"")).head
    return console


def publish(console: Console, numbers: Iterable[int]) -> None:
    vhost, header = console.gateway.vhost, native_header(Properties())
    for number in numbers:
        vhost.publish(vhost.default_exchange, Message("", "orders", header, body_of(number)))


def body_of(number: int) -> bytes:
    """Return incompressible bytes."""
    return shake_128(b"%d" % number).digest(100)


def rows(answer: Answer) -> list[int]:
    assert answer.status == 200, answer
    table = pa.ipc.open_stream(answer.content).read_all()
    assert table["body"].to_pylist() == [body_of(offset) for offset in table["offset"].to_pylist()]
    return table["offset"].to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types


def ask(console: Console, begin: int, end: int) -> Answer:
    return received(console, console.send("GET", f"{READ}&from={begin}&to={end}"))


def received(console: Console, transport: Any) -> Answer:
    for _ in range(200):
        console.clock.advance(0.01)
    answer = parsed(transport.value())
    assert len(answer.content) == int(answer.headers["content-length"])
    return answer


def test_a_whole_segment_is_sent_in_one_response(console: Console) -> None:
    answer = ask(console, 0, SEGMENT + 10)
    assert rows(answer) == list(range(SEGMENT))
    assert (answer.headers["x-first-offset"], answer.headers["x-next-offset"]) == ("0", str(SEGMENT))
    assert console.worker.requests == 0


@pytest.mark.parametrize(("begin", "end"), [(0, 1), (9000, 9001), (SEGMENT - 1, SEGMENT), (8191, 8193), (5, 19_000)])
def test_record_batches_are_sent_whole(console: Console, begin: int, end: int) -> None:
    answer = ask(console, begin, end)
    first, after = int(answer.headers["x-first-offset"]), int(answer.headers["x-next-offset"])
    assert first <= begin < end <= after
    assert rows(answer) == list(range(first, after))


def test_messages_after_the_sealed_segment_are_encoded_by_the_worker(console: Console) -> None:
    assert rows(ask(console, SEGMENT, SEGMENT + 10)) == list(range(SEGMENT, SEGMENT + 10))
    assert console.worker.requests == 1


@pytest.mark.parametrize("damage", ["missing", "torn", "foreign"])
def test_a_missing_or_damaged_file_is_written(console: Console, file: Path, damage: str) -> None:
    content = file.read_bytes()
    file.unlink()
    if damage != "missing":
        file.write_bytes(content[:-3] if damage == "torn" else b"something else")
    assert rows(ask(console, 3, 7))[3:7] == [3, 4, 5, 6]
    assert (console.worker.encoded, file.read_bytes()) == (1, content)
    assert rows(ask(console, 9000, 9007))
    assert console.worker.encoded == 1


def test_without_a_file_the_worker_encodes_the_messages(console: Console, file: Path) -> None:
    file.unlink()
    file.mkdir()
    assert rows(ask(console, 3, 7)) == [3, 4, 5, 6]


def test_a_read_starts_the_encoding_of_further_segments(console: Console) -> None:
    ask(console, SEGMENT, SEGMENT + 1)
    assert console.worker.wanted == {"orders"}


def test_a_segment_deleted_during_a_response_is_sent_completely(console: Console, file: Path) -> None:
    transport = console.send("GET", f"{READ}&from=0&to={SEGMENT}")
    file.unlink()
    assert rows(received(console, transport)) == list(range(SEGMENT))


def test_a_write_is_one_piece(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []
    flush = ResponseStream._flush

    def counted(sending: ResponseStream) -> None:
        before = len(transport.value()) if turns else 0
        turns.append(before)
        flush(sending)

    monkeypatch.setattr(ResponseStream, "_flush", counted)
    transport = console.send("GET", f"{READ}&from=0&to={SEGMENT}")
    received(console, transport)
    sizes = [after - before for before, after in itertools.pairwise(turns[1:])]
    assert PIECE_SIZE <= max(sizes) < 2 * PIECE_SIZE
    assert sum(sizes) > 10 * PIECE_SIZE


def test_sending_pauses_for_a_slow_client(console: Console) -> None:
    transport = console.send("GET", f"{READ}&from=0&to={SEGMENT}")
    transport.producer.pauseProducing()
    sent = len(transport.value())
    for _ in range(10):
        console.clock.advance(0.01)
    assert len(transport.value()) == sent
    transport.producer.resumeProducing()
    assert rows(received(console, transport)) == list(range(SEGMENT))


def test_a_client_that_stops_reading_is_disconnected(console: Console) -> None:
    transports = [console.send("GET", f"{READ}&from=0&to={SEGMENT}") for _ in range(2)]
    for transport in transports:
        transport.producer.pauseProducing()
    waiting = console.send("GET", f"{READ}&from=0&to=5")
    console.clock.advance(HttpLimits().stall_timeout_s - 1)
    transports[0].producer.resumeProducing()
    transports[0].producer.pauseProducing()
    console.clock.advance(2)
    assert [transport.disconnected for transport in transports] == [False, True]
    assert rows(received(console, waiting))[:5] == [0, 1, 2, 3, 4]


def test_a_disconnect_frees_the_slot_of_a_read(console: Console) -> None:
    for _ in range(5):
        transport = console.send("GET", f"{READ}&from=0&to={SEGMENT}")
        console.clock.advance(0)
        transport.hang_up()
    assert rows(ask(console, 0, 5))[:5] == [0, 1, 2, 3, 4]


def test_a_file_shorter_than_its_index_aborts_the_connection(console: Console, file: Path) -> None:
    """The response must not look complete, so that the client retries."""
    transport = console.send("GET", f"{READ}&from=0&to={SEGMENT}")
    with file.open("r+b") as opened:
        opened.truncate(300_000)
    for _ in range(50):
        console.clock.advance(0.01)
    assert transport.disconnected


def test_a_segment_with_messages_that_are_not_confirmed_is_not_read_from_its_file(console: Console) -> None:
    stream = console.gateway.vhost.queue_by_name["orders"]
    assert isinstance(stream, Stream)
    stream.log.durable_end = SEGMENT - 1
    answer = ask(console, SEGMENT - 5, SEGMENT)
    assert rows(answer) == list(range(SEGMENT - 5, SEGMENT - 1))
    assert answer.headers["x-next-offset"] == str(SEGMENT - 1)
    assert console.worker.requests == 1
