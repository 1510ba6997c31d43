"""The JSON-lines tracer: rows in order, sampling, rotation, left-out lines, and refusals of its settings."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.api import ConfigurationError
from gateway.kernel.messages.message import Message
from gateway.kernel.messages.origin import Origin
from gateway.plugins.registry import load_plugins
from gateway.testing import MemoryBroker
from gateway.testing.broker import header_of
from gateway_tracing.json_lines import JsonLines, JsonLinesSettings, LineFile

ORIGIN = Origin("client", 1, "guest", "amqp091")


def message(key: str = "k", size: int = 4) -> Message:
    return Message("x", key, header_of(), b"b" * size)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def tracer_to(path: Path, *, chance: Iterator[float] | None = None, **settings: Any) -> JsonLines:
    chosen = JsonLinesSettings(path=str(path), **settings)
    file = LineFile(path, maxBytes=chosen.max_bytes, backupCount=chosen.files, encoding="utf-8")
    return JsonLines(chosen, file, lambda: next(chance or iter(())))


def test_publishes_and_deliveries_are_lines_in_order(tmp_path: Path) -> None:
    tracer = tracer_to(tmp_path / "trace")
    tracer.published(message(), ["q1", "q2"], ORIGIN)
    tracer.delivered(message(), "q1", True, ORIGIN)
    tracer.close()
    published, delivered = lines(tmp_path / "trace")
    assert (published["event"], published["queues"], published["body_size"]) == ("publish", ["q1", "q2"], 4)
    assert (published["exchange"], published["routing_key"], published["user"]) == ("x", "k", "guest")
    assert (delivered["event"], delivered["queue"], delivered["redelivered"]) == ("deliver", "q1", True)
    assert published["time_ns"] <= delivered["time_ns"]


def test_a_sample_is_written(tmp_path: Path) -> None:
    tracer = tracer_to(tmp_path / "trace", sample=0.5, chance=iter([0.4, 0.6, 0.1]))
    for key in ("a", "b", "c"):
        tracer.published(message(key), [], ORIGIN)
    tracer.close()
    assert [row["routing_key"] for row in lines(tmp_path / "trace")] == ["a", "c"]


def test_files_are_rotated_by_size(tmp_path: Path) -> None:
    tracer = tracer_to(tmp_path / "trace", max_bytes=10_000, files=2)
    for _ in range(300):
        tracer.published(message(), [], ORIGIN)
    tracer.close()
    assert {path.name for path in tmp_path.iterdir()} == {"trace", "trace.1", "trace.2"}
    assert all(path.stat().st_size <= 10_000 for path in tmp_path.iterdir())


class BlockedFile(LineFile):
    """A file on a disk that hangs until it is released."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8")
        self.started, self.released = threading.Event(), threading.Event()

    def emit(self, record: Any) -> None:
        self.started.set()
        assert self.released.wait(20)
        super().emit(record)


def test_a_slow_disk_delays_no_client_and_left_out_lines_are_counted(tmp_path: Path) -> None:
    file = BlockedFile(tmp_path / "trace")
    tracer = JsonLines(JsonLinesSettings(path="trace", max_waiting=2), file)
    tracer.published(message("first"), [], ORIGIN)
    assert file.started.wait(20)
    for number in range(5):
        tracer.published(message(str(number)), [], ORIGIN)
    assert tracer.left_out == 3
    file.released.set()
    tracer.close()
    rows = lines(tmp_path / "trace")
    assert [row["routing_key"] for row in rows if row["event"] == "publish"] == ["first", "0", "1"]
    assert [row["lines"] for row in rows if row["event"] == "left-out"] == [3]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_lines_that_cannot_be_written_are_counted() -> None:
    file = LineFile("/dev/full", encoding="utf-8")
    tracer = JsonLines(JsonLinesSettings(path="trace"), file)
    tracer.published(message(), [], ORIGIN)
    tracer.close()
    assert file.failures == 1


def test_a_virtual_host_uses_it_while_tracing_is_on(tmp_path: Path) -> None:
    broker = MemoryBroker()
    plugins = {"tracing-json-lines": {"path": str(tmp_path / "{vhost}.jsonl")}}
    vhost = broker.kernel.declare_vhost("a/b", plugins=plugins)
    vhost.declare_queue("q")
    vhost.publish(vhost.default_exchange, Message("", "q", header_of(), b""), ORIGIN)
    broker.kernel.trace("a/b", True)
    vhost.publish(vhost.default_exchange, Message("", "q", header_of(), b"1"), ORIGIN)
    registry_view = broker.kernel.plugins_in_use._view_by_vhost["a/b"]
    assert list(registry_view.close()) == []
    [row] = lines(tmp_path / "a%2Fb.jsonl")
    assert (row["queues"], row["body_size"]) == (["q"], 1)


WRONG = [
    ({}, "path"),
    ({"path": "/nope/no/such/file"}, "cannot write /nope/no/such/file: No such file or directory"),
    ({"path": "x", "sample": 0.0}, "sample"),
    ({"path": "x", "files": 0}, "files"),
    ({"path": "x", "size": 1}, "size"),
]


@pytest.mark.parametrize(("settings", "reason"), WRONG)
def test_wrong_settings_are_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        load_plugins().view("/", {"tracing-json-lines": settings}).tracers(_NoVhost())


class _NoVhost:
    name, node = "/", "here"

    def publish(self, *message: Any) -> None:
        """Publish nothing."""
