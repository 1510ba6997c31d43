"""All routes with values of wrong types: none causes an internal error or a traceback."""

import inspect
import json
import logging
from collections.abc import Iterator
from typing import Any, Final

import pytest

from gateway.management.http.routes import Endpoint
from gateway.management.resources.table import ROUTES
from tests.management.console import Console

#: Wrong JSON values of a field.
VALUES: Final[list[Any]] = [
    None, True, -1, 0, 2**63, 1.5, "", "x", "²", "\u0661", "-", "9" * 400, "\x00", "é" * 200, "a" * 70_000, [], [[]],
    [1], [None], ["x", {}], [["x", 1, 2]], [["x", -1, 2**60]], {}, {"x": {}}, {"x": [1]}, {"0": {"0": 1}}, {"": ""},
]  # fmt: skip

#: The fields of all requests, each with a value that is valid in some request.
FIELDS: Final[dict[str, Any]] = {
    "durable": True, "auto_delete": False, "internal": False, "arguments": {}, "type": "direct", "node": "gateway@here",
    "routing_key": "k", "properties": {}, "payload": "p", "payload_encoding": "string", "ackmode": "ack_requeue_true",
    "count": 1, "encoding": "auto", "truncate": 10, "pattern": "x", "definition": {"max-length": 5}, "priority": 0,
    "apply-to": "queues", "value": {"src-uri": "amqp://"}, "configure": ".*", "write": ".*", "read": ".*",
    "exchange": "amq.topic", "tags": "management", "password": "p", "users": ["absent"],
    "description": "d", "tracing": False, "trace_table": False, "default_queue_type": "classic", "name": "n",
    "action": "sync", "offset": 3, "offsets": {"q": {"0": 1}}, "attempts": [["a", 1, 1]], "producer": "p", "query": "q",
    "batch": 1, "unroutable": "fail", "partitions": 2, "exchange-type": "x-super-stream",
}  # fmt: skip

PROPERTIES: Final = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id", "reply_to",
    "expiration", "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id",
)  # fmt: skip

ARGUMENTS: Final = (
    "x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes", "x-overflow", "x-dead-letter-exchange",
    "x-dead-letter-routing-key", "x-single-active-consumer", "x-max-priority", "x-queue-type", "x-queue-mode",
    "x-delivery-limit", "x-max-age", "x-stream-max-segment-size-bytes", "alternate-exchange", "x-match", "x",
)  # fmt: skip

#: Values of the names in a path.
NAMES: Final = ["%2F", "q", "amq.topic", "", "²", "%FF", "%ED%A0%80", "%00", "9" * 400, "-1", "e", "~", "%", "a" * 300]

QUERIES: Final = [
    "page=²", "page=" + "9" * 5000, "page=1&page_size=-1", "page=1&page_size=²", "page=1&use_regex=true&name=(",
    "page=1&use_regex=true&name=%ED%A0%80", "sort=a.b.c", "sort=", "columns=..,a", "columns=name.x", "truncate=²",
    "lengths_age=²&lengths_incr=1", "lengths_age=9999999999&lengths_incr=1", "part=²&attempt=", "from=²&to=²&queue=q",
    "offset=-1&bytes=²&queue=q", "timestamp=" + "9" * 30, "names=%FF", "sort=name&sort_reverse=²", "%FF=%FF",
    "if-unused=1",
]  # fmt: skip


@pytest.fixture
def console(caplog: pytest.LogCaptureFixture) -> Iterator[Console]:
    """A console; asserts at the end that no error was logged."""
    caplog.set_level(logging.WARNING)
    console = Console()
    vhost = console.gateway.vhost
    vhost.declare_queue("q")
    vhost.declare_queue("s", is_durable=True, arguments={"x-queue-type": "stream"})
    console.add_user("other")
    yield console
    assert [record for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info] == []


def ask(console: Console, method: str, path: str, content: bytes = b"") -> None:
    answer = console.ask(method, path, content=content)
    may_be_unavailable = path.startswith(("/health", "/queues/quorum"))  # the latter for queues without replicas
    assert answer.status < 500 or (may_be_unavailable and answer.status == 503), (method, path, content[:200], answer)


def path_of(route: Endpoint, **names: str) -> str:
    """Return a path of existing entities, except for the given names."""
    places = [part for part in route.path.split("/") if part.startswith("<")]
    path = route.path
    for number, place in enumerate(places):
        known = "%2F" if "vhost" in place or (route.path.startswith("/vhost") and number == 0) else "q"
        if "user" in place or (route.path.startswith(("/users", "/user-limits")) and number == 0):
            known = "other"
        if route.path.startswith("/stream/<vhost>") and number == 1:
            known = "s"
        path = path.replace(place, names.get(f"place{number}", known), 1)
    return path


def _fields_of(route: Endpoint) -> list[str]:
    """Return the fields used in the source file of a route."""
    source = inspect.getsource(inspect.getmodule(route.resource))  # type: ignore[arg-type]  # it has a module
    return [field for field in FIELDS if f'"{field}"' in source]


def _identity(route: Endpoint) -> str:
    return f"{route.method} {route.path}"


WRITES = [route for route in ROUTES if route.method in ("PUT", "POST")]


@pytest.mark.parametrize("route", ROUTES, ids=_identity)
def test_any_names_in_a_path_are_answered(console: Console, route: Endpoint) -> None:
    places = route.path.count("<")
    for place in range(places):
        for name in NAMES:
            path = path_of(route, **{f"place{place}": name})
            ask(console, route.method, path, b"{}" if route.method in ("PUT", "POST") else b"")
    for query in QUERIES if route.method == "GET" or "/pipeline/" in route.path else ():
        ask(console, route.method, f"{path_of(route)}?{query}")


@pytest.mark.parametrize("route", WRITES, ids=_identity)
def test_any_type_of_a_field_is_answered(console: Console, route: Endpoint) -> None:
    path = path_of(route)
    for field in _fields_of(route):
        for value in VALUES:
            ask(console, route.method, path, json.dumps(FIELDS | {field: value}).encode())


@pytest.mark.parametrize("name", PROPERTIES)
def test_any_type_of_a_property_is_answered(console: Console, name: str) -> None:
    for value in [*VALUES, {"h": 2**63}, {"h": [{"x": None}]}]:
        fields = {"properties": {name: value}, "routing_key": "q", "payload": "p", "payload_encoding": "string"}
        ask(console, "POST", "/exchanges/%2F/amq.default/publish", json.dumps(fields).encode())
    fetch = {"ackmode": "ack_requeue_true", "count": 100, "encoding": "auto"}
    ask(console, "POST", "/queues/%2F/q/get", json.dumps(fetch).encode())


@pytest.mark.parametrize("name", ARGUMENTS)
def test_any_type_of_an_argument_is_answered(console: Console, name: str) -> None:
    for number, value in enumerate(VALUES):
        fields = json.dumps({"durable": True, "arguments": {name: value}}).encode()
        ask(console, "PUT", f"/queues/%2F/{name}{number}", fields)
        ask(console, "PUT", f"/exchanges/%2F/{name}{number}", fields)
        ask(console, "POST", "/bindings/%2F/e/amq.headers/q/q", fields)
    for path in ("/queues", "/exchanges", "/bindings", "/definitions", "/overview"):
        ask(console, "GET", path)


NO_JSON = [
    b"\xff", b'{"a": \xed\xa0\x80}', b'{"value": "\\ud800"}', b'{"value": {"\\udfff": 1}}', b'{"value": NaN}',
    b'{"value": -Infinity}', b'{"value": 1e999}', b'{"value": ' + b"9" * 400 + b"}", b'{"value": ' + b"9" * 5000 + b"}",
    b'{"value": ' + b"[" * 65 + b"]" * 65 + b"}", b"[" * 100_000, b'{"value":' * 10_000, b'"' + b'\\"' * 100_000,
    "{}".encode("utf-16"), b"\xef\xbb\xbf{}", b"{} {}", b"\x00", b"[]", b'"x"',
]  # fmt: skip


@pytest.mark.parametrize("content", NO_JSON, ids=lambda content: repr(content[:24]))
def test_a_body_that_is_no_json_is_refused_with_the_reason(console: Console, content: bytes) -> None:
    for path in ("/global-parameters/p", "/parameters/shovel/%2F/p", "/queues/%2F/new", "/permissions/%2F/guest"):
        answer = console.ask("PUT", path, content=content)
        assert (answer.status, answer.json["error"]) in {(400, "bad_request"), (413, "bad_request")}
        assert answer.status == 413 or answer.json["reason"].startswith(("not_json", "not_utf8"))


def test_a_lone_surrogate_in_a_body_does_not_break_listings(console: Console) -> None:
    bind = "/bindings/%2F/e/amq.topic/q/q"
    for fields in (rb'{"routing_key": "\ud800"}', rb'{"routing_key": "k", "arguments": {"\udc00": 1}}'):
        assert console.ask("POST", bind, content=fields).status == 400
    assert console.ask("POST", bind, content=rb'{"routing_key": "\ud83d\ude00"}').status == 201
    assert "😀" in [each["routing_key"] for each in console.get("/bindings")]


def test_an_old_binding_with_a_lone_surrogate_does_not_break_listings(console: Console) -> None:
    vhost = console.gateway.vhost
    vhost.bindings.install(vhost.exchange("amq.topic"), vhost.queue("q"), "\ud800", {"\ud801": "\ud802"})
    for path in ("/bindings", "/bindings/%2F", "/queues/%2F/q/bindings", "/exchanges/%2F/amq.topic/bindings/source",
                 "/bindings/%2F/e/amq.topic/q/q", "/definitions"):  # fmt: skip
        ask(console, "GET", path)
