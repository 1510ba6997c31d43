"""The columnar worker as a process: requests and answers in frames, and its end."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from gateway.columnar.encoding.schema import MESSAGES, TRACE
from gateway.columnar.tables.sealed import SealedFile
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.worker_process.framing import Frame, FrameReader, encode_frame
from tests.columnar.streams import NOON_MS, chunk, message, read_stream

PLACE = {"vhost": "/", "queue": "q", "partition": 0}
SAYS = {"kind": "queue", "name": "q", "queue": "q"}


class Worker:
    """The process and its frames."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "gateway.columnar.encoding.worker"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._reader = FrameReader()

    def ask(self, head: dict[str, Any], payload: bytes = b"") -> Frame:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(encode_frame(head, payload))
        self.process.stdin.flush()
        while True:
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            assert data, "the worker ended"
            for frame in self._reader.feed(data):
                return frame

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.end()


def table(directory: Path, **task: Any) -> dict[str, Any]:
    head = {"do": "table", "table": str(directory), "kind": "messages", "vhost": "/", "queue": "q"}
    return head | {"stem": "queue-q-1", "says": SAYS, "path": None} | task


def test_chunks_are_converted_to_an_arrow_stream(worker: Worker) -> None:
    chunks = chunk([message(b"%d" % number) for number in range(10)])
    answer = worker.ask({"do": "arrow", **PLACE, "from": 2, "to": 5}, chunks)
    assert read_stream(answer.payload)["body"].to_pylist() == [b"2", b"3", b"4"]


def test_a_segment_is_converted_to_a_file_beside_its_chunks(worker: Worker, tmp_path: Path) -> None:
    path = tmp_path / f"{7:020}.chunks"
    path.write_bytes(chunk([message()] * 10, first=7))
    answer = worker.ask({"do": "segment", **PLACE, "path": str(path)})
    file = SealedFile.read(path.with_suffix(".arrow"))
    assert file is not None
    assert (file.batches[0].first, file.end) == (7, 17)
    assert answer.head["bytes"] == file.path.stat().st_size
    assert {entry.suffix for entry in tmp_path.iterdir()} == {".chunks", ".arrow"}


@pytest.mark.parametrize("is_piped", [True, False])
def test_a_table_is_written_from_a_file_and_from_the_pipe(worker: Worker, tmp_path: Path, is_piped: bool) -> None:
    path = tmp_path / "x.chunks"
    path.write_bytes(chunk([message()] * 10))
    task = {"from": 0, "to": 10, "path": None if is_piped else str(path)}
    answer = worker.ask(table(tmp_path / "archive", **task), path.read_bytes() if is_piped else b"")
    [file] = answer.head["files"]
    assert pq.ParquetFile(tmp_path / "archive" / file).schema_arrow.equals(MESSAGES)


def test_a_trace_is_a_table_of_events(worker: Worker, tmp_path: Path) -> None:
    row = b'["publish",%d,5,"amqp091","c","guest",null,"lone\\ud800","k","m",9,null,null,null,null,4]' % NOON_MS
    turns = [Message("", "", native_header(Properties()), b"[%b]" % b",".join([row] * count)) for count in (1, 3)]
    task = table(tmp_path, kind="trace", stem="trace-1", queue=None, says={}, **{"from": 0, "to": 2})
    [file] = worker.ask(task, chunk(turns)).head["files"]
    found = pq.ParquetFile(tmp_path / file).read()
    assert found.schema.equals(TRACE)
    assert found["event"].to_pylist() == ["publish"] * 4
    assert found["exchange"][0].as_py() == "lone\\ud800"
    assert (found["vhost"][0].as_py(), found["trace_id"][0].as_py(), found["queue"][0].as_py()) == ("/", 9, None)


@pytest.mark.parametrize(
    "task",
    [
        {"do": "nonsense"},
        {},
        {"do": "segment", **PLACE, "path": "/nowhere"},
        {"do": "arrow", **PLACE, "from": 0, "to": 9},
    ],
    ids=["unknown", "empty", "no file", "torn chunks"],
)
def test_a_failure_is_answered_as_text(worker: Worker, task: dict[str, Any]) -> None:
    assert worker.ask(task, chunk([message()])[:-1]).head["error"]
    assert worker.ask({"do": "arrow", **PLACE, "from": 0, "to": 1}, chunk([message()])).head.get("error") is None


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGHUP])
def test_the_worker_ends_with_its_input_and_ignores_signals_for_the_broker(sent: signal.Signals) -> None:
    worker = Worker()
    worker.ask({"do": "arrow", **PLACE, "from": 0, "to": 0})
    worker.process.send_signal(sent)
    worker.ask({"do": "arrow", **PLACE, "from": 0, "to": 0})
    assert worker.process.stdin is not None
    worker.process.stdin.close()
    assert worker.process.wait(10) == 0
    assert worker.process.stdout is not None
    worker.process.stdout.close()


def test_the_broker_itself_never_imports_arrow() -> None:
    program = "import sys, gateway.node.node, gateway.worker_process.process; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0
