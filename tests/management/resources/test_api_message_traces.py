"""Traces of messages over HTTP: filters, one trace, sampling, wrong requests."""

from typing import Any

import pytest

from tests.management.console import Console


@pytest.fixture
def traced(console: Console) -> Console:
    """Two messages in the queue ``q``, with message ids, and one without a route."""
    console.put("/queues/%2F/q", {})
    assert console.ask("PUT", "/message-traces/%2F", {"sample": 1}).status == 204
    for number, key in ((1, "q"), (2, "q"), (3, "nowhere")):
        properties = {"message_id": f"m{number}"}
        fields = {"properties": properties, "routing_key": key, "payload": "x", "payload_encoding": "string"}
        console.post("/exchanges/%2F/amq.default/publish", fields)
    return console


def ids(answer: Any) -> list[str]:
    return [trace["message_id"] for trace in answer["traces"]]


def test_a_message_is_found_by_its_message_id(traced: Console) -> None:
    answer = traced.get("/message-traces/%2F?message_id=m1")
    [trace] = answer["traces"]
    assert (trace["routing_key"], trace["where"]) == ("q", [{"queue": "q", "state": "ready"}])
    assert [event["event"] for event in trace["events"]] == ["publish", "route", "enqueue"]
    assert traced.get(f"/message-traces/%2F/{trace['id']}") == trace
    assert (answer["messages"], answer["sample"], answer["evicted"]) == (3, 1.0, 0)


FILTERS = [
    ("", ["m3", "m2", "m1"]),
    ("limit=1", ["m3"]),
    ("queue=q", ["m2", "m1"]),
    ("routing_key=nowhere", ["m3"]),
    ("exchange=orders", []),
    ("user=guest", ["m3", "m2", "m1"]),
    ("user=clerk", []),
    ("queue=q&message_id=m2", ["m2"]),
]


@pytest.mark.parametrize(("query", "found"), FILTERS)
def test_filters_select_traces_the_latest_first(traced: Console, query: str, found: list[str]) -> None:
    assert ids(traced.get(f"/message-traces/%2F?{query}")) == found


def test_a_drop_has_its_reason(traced: Console) -> None:
    [trace] = traced.get("/message-traces/%2F?message_id=m3")["traces"]
    assert trace["where"] == [{"queue": "", "state": "unroutable"}]
    assert (trace["events"][-1]["event"], trace["events"][-1]["reason"]) == ("drop", "unroutable")


def test_traces_are_kept_when_tracing_ends_and_dropped_on_request(traced: Console) -> None:
    traced.put("/message-traces/%2F", {"sample": 0})
    assert len(traced.get("/message-traces/%2F")["traces"]) == 3
    traced.delete("/message-traces/%2F")
    assert traced.get("/message-traces/%2F")["traces"] == []


WRONG: list[tuple[str, str, Any, int, str]] = [
    ("GET", "?nope=1", None, 400, "unknown filter 'nope'; there are message_id, exchange"),
    ("GET", "?limit=0", None, 400, "limit must be a number from 1 to 1000, not '0'"),
    ("GET", "/1", None, 404, "Not Found"),
    ("GET", "/x", None, 404, "Not Found"),
    ("PUT", "", {"sample": 2}, 400, "sample must be a number from 0 to 1, not 2"),
    ("PUT", "", {"sample": True}, 400, "sample must be a number from 0 to 1, not True"),
    ("PUT", "", {}, 400, "key_missing,sample"),
]


@pytest.mark.parametrize(("method", "path", "fields", "status", "reason"), WRONG)
def test_wrong_requests_are_refused(
    console: Console, method: str, path: str, fields: Any, status: int, reason: str
) -> None:
    answer = console.ask(method, f"/message-traces/%2F{path}", fields)
    assert (answer.status, reason in str(answer.json["reason"])) == (status, True), answer


def test_traces_need_monitoring_and_sampling_an_administrator(console: Console) -> None:
    console.add_user("al", "management")
    console.add_user("mo", "monitoring")
    assert console.ask("GET", "/message-traces/%2F", user="al").status == 401
    assert console.ask("GET", "/message-traces/%2F", user="mo").status == 200
    assert console.ask("PUT", "/message-traces/%2F", {"sample": 1}, user="mo").status == 401
