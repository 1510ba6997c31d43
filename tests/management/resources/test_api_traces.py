"""Traces in files: their content, and how operators start, read and stop them."""

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from gateway.management.trace_files.trace_files import MAX_TRACES
from tests.management.console import TRACE_LIMIT, Console
from tests.waiting import wait_until

ALL = {"format": "json", "pattern": "#"}
FETCH = {"ackmode": "ack_requeue_false", "count": 10, "encoding": "auto"}


@pytest.fixture
def traced(tmp_path: Path) -> Console:
    """A console with a queue; the files of traces are in ``files`` of the temporary directory."""
    console = Console(traces=tmp_path / "files")
    console.put("/queues/%2F/q", {})
    return console


def publish(console: Console, payload: str = "hello", key: str = "q") -> None:
    console.post(
        "/exchanges/%2F/amq.default/publish",
        {"properties": {"message_id": "m"}, "routing_key": key, "payload": payload, "payload_encoding": "string"},
    )


def lines(tmp_path: Path, console: Console, name: str = "t") -> str:
    """Return the file of a trace once everything is written."""
    (trace,) = [each for each in console.get("/traces") if each["name"] == name]
    file = tmp_path / "files" / f"{name}.log"
    if trace["format"] == "json":
        wait_until(lambda: file.read_bytes().count(b"\n") == trace["lines"], "the lines are not written")
    else:
        wait_until(lambda: file.read_text().count("=" * 80) == trace["lines"], "the lines are not written")
    return file.read_text()


def rows(tmp_path: Path, console: Console) -> list[Any]:
    return [json.loads(line) for line in lines(tmp_path, console).splitlines()]


def test_publishes_and_deliveries_are_written_with_the_fields_of_rabbitmq(traced: Console, tmp_path: Path) -> None:
    traced.put("/traces/%2F/t", ALL)
    publish(traced)
    traced.post("/queues/%2F/q/get", FETCH)
    first, second = rows(tmp_path, traced)
    assert first["type"] == "published"
    assert (first["exchange"], first["routing_keys"], first["routed_queues"]) == ("", ["q"], ["q"])
    assert (first["queue"], first["user"], first["vhost"], first["node"]) == ("none", "guest", "/", "gateway@here")
    assert first["properties"] == {"message_id": "m"}
    assert b64decode(first["payload"]) == b"hello"
    assert (second["type"], second["queue"], second["routed_queues"]) == ("received", "q", "none")


def test_a_pattern_selects_exchanges_and_queues(traced: Console, tmp_path: Path) -> None:
    traced.put("/exchanges/%2F/other", {"type": "fanout"})
    traced.put("/traces/%2F/t", ALL | {"pattern": "publish.other"})
    publish(traced)
    traced.post(
        "/exchanges/%2F/other/publish",
        {"properties": {}, "routing_key": "k", "payload": "x", "payload_encoding": "string"},
    )
    assert [row["exchange"] for row in rows(tmp_path, traced)] == ["other"]


def test_text_has_a_heading_and_the_body(traced: Console, tmp_path: Path) -> None:
    traced.put("/traces/%2F/t", {"format": "text", "pattern": "publish.#", "max_payload_bytes": 3})
    publish(traced)
    text = lines(tmp_path, traced)
    assert "Message published\n\nNode:         gateway@here\n" in text
    assert 'Routed queues: ["q"]\n' in text
    assert text.endswith("Payload: \nhel\n")


def test_a_file_is_read_and_deleted_over_http(traced: Console, tmp_path: Path) -> None:
    traced.put("/traces/%2F/t", ALL)
    publish(traced)
    content = lines(tmp_path, traced)
    assert traced.get("/trace-files") == [{"name": "t.log", "size": len(content)}]
    answer = traced.ask("GET", "/trace-files/t.log")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.content.decode() == content
    refusal = traced.ask("DELETE", "/trace-files/t.log")
    assert refusal.json["reason"] == "the trace 't' writes to this file: stop it first"
    traced.delete("/traces/%2F/t")
    traced.delete("/trace-files/t.log")
    assert traced.get("/trace-files") == []


def test_a_stopped_trace_costs_nothing_and_writes_nothing(traced: Console, tmp_path: Path) -> None:
    assert traced.put("/traces/%2F/t", ALL) == 201
    assert traced.gateway.vhost.tracing is not None
    traced.delete("/traces/%2F/t")
    assert traced.gateway.vhost.tracing is None
    publish(traced)
    assert traced.get("/traces") == []
    assert (tmp_path / "files" / "t.log").read_text() == ""


def test_a_trace_is_independent_of_the_tracing_of_the_virtual_host(traced: Console, tmp_path: Path) -> None:
    traced.put("/traces/%2F/t", ALL)
    traced.put("/vhosts/%2F", {"tracing": True})
    traced.put("/vhosts/%2F", {"tracing": False})
    publish(traced)
    assert len(rows(tmp_path, traced)) == 1


def test_a_second_put_replaces_the_trace(traced: Console, tmp_path: Path) -> None:
    traced.put("/traces/%2F/t", ALL | {"pattern": "deliver.#"})
    assert traced.put("/traces/%2F/t", ALL) == 204
    publish(traced)
    assert traced.get("/traces/%2F/t")["lines"] == 1


def test_a_full_file_gets_no_more_lines(traced: Console, tmp_path: Path) -> None:
    traced.put("/traces/%2F/t", ALL)
    for _ in range(20):
        publish(traced, "x" * 200)
    content, trace = lines(tmp_path, traced), traced.get("/traces/%2F/t")
    assert len(content) <= TRACE_LIMIT
    assert trace["lines"] + trace["left_out"] == 20
    assert trace["left_out"] > 0


WRONG = [
    ({"pattern": "#"}, "[{key_missing,format}]"),
    (ALL | {"format": "xml"}, "format not json or text"),
    (ALL | {"max_payload_bytes": "5"}, "max_payload_bytes not integer"),
    (ALL | {"pattern": 3}, ["not_string", "pattern"]),
    (
        ALL | {"tracer_connection_username": "u"},
        "tracer_connection_username has no effect: a trace needs no connection",
    ),
]


@pytest.mark.parametrize(("fields", "reason"), WRONG)
def test_a_wrong_request_is_refused(traced: Console, fields: object, reason: object) -> None:
    assert traced.ask("PUT", "/traces/%2F/t", fields).result == (400, {"error": "bad_request", "reason": reason})


@pytest.mark.parametrize("name", ["..", ".hidden", "..%2Fescape", "a%2Fb", "%00", "x" * 101])
def test_a_name_cannot_leave_the_directory(traced: Console, tmp_path: Path, name: str) -> None:
    assert traced.ask("PUT", f"/traces/%2F/{name}", ALL).status == 400
    assert traced.ask("GET", f"/trace-files/{name}").status == 404
    assert not (tmp_path / "files").exists()


def test_two_virtual_hosts_do_not_share_a_file(traced: Console) -> None:
    traced.put("/vhosts/other", {})
    traced.put("/traces/%2F/t", ALL)
    answer = traced.ask("PUT", "/traces/other/t", ALL)
    assert answer.json["reason"] == "a trace of vhost '/' writes to the file 't.log'"
    assert traced.ask("DELETE", "/traces/other/t").status == 404


def test_the_number_of_traces_is_bounded(traced: Console) -> None:
    for number in range(MAX_TRACES):
        traced.put(f"/traces/%2F/t{number}", ALL)
    assert traced.ask("PUT", "/traces/%2F/one-more", ALL).json["reason"] == f"there are {MAX_TRACES} traces already"


def test_paths_with_the_node_are_the_same(traced: Console) -> None:
    node = "/traces/node/gateway%40here"
    traced.put(f"{node}/%2F/t", ALL)
    assert traced.get(f"{node}/%2F/t") == traced.get("/traces/%2F/t")
    assert traced.get(node) == traced.get("/traces/%2F") == traced.get("/traces")
    assert traced.ask("GET", "/traces/node/elsewhere").status == 404
    assert [each["name"] for each in traced.get("/trace-files/node/gateway%40here")] == ["t.log"]


def test_only_administrators_trace(traced: Console) -> None:
    traced.add_user("watcher", "monitoring")
    for method, path in (("GET", "/traces"), ("PUT", "/traces/%2F/t"), ("GET", "/trace-files/t.log")):
        assert traced.ask(method, path, user="watcher").status == 401


def test_the_end_of_a_file_is_read_without_the_rest(traced: Console, tmp_path: Path) -> None:
    traced.put("/traces/%2F/t", {"format": "text", "pattern": "publish.#"})
    publish(traced, "the end")
    assert lines(tmp_path, traced).endswith("the end\n")
    assert traced.ask("GET", "/trace-files/t.log?tail=8").content == b"the end\n"
    whole = traced.ask("GET", "/trace-files/t.log").content
    assert traced.ask("GET", "/trace-files/t.log?tail=1000000").content == whole
    refusal = traced.ask("GET", "/trace-files/t.log?tail=-1")
    assert (refusal.status, refusal.json["reason"]) == (400, "tail must be a number of bytes, not '-1'")
