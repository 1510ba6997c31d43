"""A fake broker with only the pipeline's protocol: streams in memory, and faults on demand.

For faults that a real broker does not produce on demand: a broken connection, status 503, one message per answer.
"""

import json
import ssl
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa

from gateway.columnar.encoding.schema import MESSAGES

EPOCH_MS = 1_700_000_000_000


class FakeBroker:
    """Streams by name. Message n of a stream has body ``name:n`` and a time n seconds after ``EPOCH_MS``.

    ``partitions`` are queue -> number -> stream. ``faults`` are consumed one for each request: a status to answer
    with, or ``"hang up"``. ``rows_per_answer`` ends answers early, ``batch_rows`` starts them early. Commits are
    answered with each of ``progress_answers`` first. ``lost_parts`` is the number of parts that are not on its disk.
    ``batch_state`` is that of any batch; ``None`` for a broker that does not tell it.
    """

    def __init__(self) -> None:
        self.port = 0
        self.reset()

    def reset(self) -> None:
        """Remove all streams and faults."""
        self.bounds: dict[str, tuple[int, int]] = {}
        self.incarnations: dict[str, str] = {}
        self.partitions: dict[str, dict[str, str]] = {}
        self.faults: deque[int | str] = deque()
        self.requests: list[str] = []
        self.progress: dict[str, Any] = {}
        self.parts: dict[tuple[str, str], bytes] = {}
        self.commits: list[dict[str, Any]] = []
        self.batches: list[dict[str, Any]] = []
        self.answer_to_batches = 200
        self.progress_answers: deque[dict[str, Any]] = deque()
        self.lost_parts = 0
        self.batch_state: str | None = "unknown"
        self.commit_answer: tuple[int, dict[str, Any]] = (200, {"published": 1, "duplicate": False})
        self.rows_per_answer = 1_000_000
        self.batch_rows = 1

    def declare(self, queue: str, first: int, end: int) -> None:
        """Create a stream, or change its bounds."""
        self.partitions[queue] = {"0": queue}
        self.bounds[queue] = (first, end)

    def recreate(self, queue: str, first: int, end: int, incarnation: str) -> None:
        """Create a stream that has an incarnation, as brokers since 2026 name it."""
        self.declare(queue, first, end)
        self.incarnations[queue] = incarnation

    def declare_super(self, queue: str, *bounds: tuple[int, int]) -> None:
        """Create a super stream with a partition for each pair of bounds."""
        self.partitions[queue] = {str(number): f"{queue}-{number}" for number in range(len(bounds))}
        self.bounds |= {f"{queue}-{number}": each for number, each in enumerate(bounds)}

    def options(self, **more: str) -> dict[str, str]:
        """Return the options of a source or sink for this broker."""
        return {"url": f"http://127.0.0.1:{self.port}", "retryTimeout": "5s"} | more

    # Answers

    def streams(self, query: dict[str, str]) -> tuple[int, Any]:
        alone = {stream: {"0": stream} for parts in self.partitions.values() for stream in parts.values()}
        found = alone | self.partitions
        names = json.loads(query["names"]) if "names" in query else sorted(found)
        if missing := [name for name in names if name not in found]:
            return 404, {"error": "not_found", "reason": f"no stream '{missing[0]}' in vhost '/'"}
        queues = [{"queue": name, "partitions": {n: self._view(s) for n, s in found[name].items()}} for name in names]
        return 200, {"queues": queues}

    def _view(self, stream: str) -> dict[str, Any]:
        first, end = self.bounds[stream]
        named = {"incarnation": self.incarnations[stream]} if stream in self.incarnations else {}
        return {"queue": stream, "first": first, "next": end, "bytes": (end - first) * 100, **named}

    def offset(self, query: dict[str, str]) -> tuple[int, Any]:
        first, end = self.bounds[query["queue"]]
        if "timestamp" in query:
            wanted = -(-(int(query["timestamp"]) - EPOCH_MS) // 1000)
        else:
            wanted = int(query["offset"]) + int(query["bytes"]) // 100
        return 200, {"offset": min(max(wanted, first), end)}

    def read(self, query: dict[str, str]) -> tuple[int, Any]:
        stream, begin, end = query["queue"], int(query["from"]), int(query["to"])
        if stream not in self.bounds:
            return 404, {"error": "not_found", "reason": f"no queue '{stream}'"}
        first, last = self.bounds[stream]
        incarnation = self.incarnations.get(stream)
        if query.get("incarnation", incarnation) != incarnation:
            return 410, {"error": "recreated", "reason": "another stream", "incarnation": incarnation}
        if begin < first:
            return 410, {"error": "gone", "reason": f"begins at {first}", "first": first}
        begin = max(first, begin - begin % self.batch_rows)
        return 200, (begin, table(stream, begin, min(end, last, begin + self.rows_per_answer)))


def table(stream: str, begin: int, end: int) -> pa.Table:
    """Return messages of a stream as the broker sends them."""
    schema = MESSAGES
    rows = [
        {
            "vhost": "/",
            "queue": stream,
            "partition": 0,
            "offset": offset,
            "timestamp": (EPOCH_MS + offset * 1000) * 1000,
            "headers": [("n", str(offset))],
            "body": f"{stream}:{offset}".encode(),
        }
        for offset in range(begin, end)
    ]
    return pa.Table.from_pylist(rows, schema=schema)


@contextmanager
def fake_broker(tls: ssl.SSLContext | None = None) -> Iterator[FakeBroker]:
    """Run one in its own thread."""
    broker = FakeBroker()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(broker))
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    broker.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield broker
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(broker: FakeBroker) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        do_PUT = do_POST = do_GET  # noqa: N815 - as above

        def _answer(self) -> None:
            url = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            what = url.path.split("/")[4:]
            broker.requests.append(f"{self.command} {'/'.join(what)}")
            fault = broker.faults.popleft() if broker.faults else None
            if fault == "hang up":
                self.close_connection = True
                return
            status, content = (
                (fault, {"error": "fault", "reason": "on demand"}) if fault else self._content(what, query, body)
            )
            self._send(int(status), content)

        def _content(self, what: list[str], query: dict[str, str], body: bytes) -> tuple[int, Any]:
            match what:
                case ["streams"]:
                    return broker.streams(query)
                case ["offset"]:
                    return broker.offset(query)
                case ["read"]:
                    return broker.read(query)
                case ["progress", name]:
                    broker.progress[unquote(name)] = json.loads(body)
                    return 204, None
                case ["stage"]:
                    broker.parts[query["attempt"], query["part"]] = body
                    parts = sum(name == query["attempt"] for name, _ in broker.parts) - broker.lost_parts
                    return 200, {"staged": len(body), "parts": parts}
                case ["commit"]:
                    if broker.progress_answers:
                        return 202, broker.progress_answers.popleft()
                    broker.commits.append(json.loads(body))
                    return broker.commit_answer
                case ["batches"]:
                    return broker.answer_to_batches, {"batches": broker.batches}
                case ["batch"] if broker.batch_state is not None:
                    return 200, {"state": broker.batch_state}
                case ["discard"]:
                    return 204, None
            return 404, {"error": "not_found", "reason": self.path}

        def _send(self, status: int, content: Any) -> None:
            headers = {}
            if isinstance(content, tuple):
                first, rows = content
                headers = {"X-First-Offset": str(first), "X-Next-Offset": str(first + rows.num_rows)}
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, rows.schema) as stream:
                    stream.write_table(rows, max_chunksize=7)
                data = sink.getvalue().to_pybytes()
            else:
                data = b"" if content is None else json.dumps(content).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
