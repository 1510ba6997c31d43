"""HTTP resources of plugins: access, bounds, answers of every kind, and containment."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure

from gateway.api import (
    CtlVerb,
    HttpReply,
    HttpRequest,
    HttpResource,
    NotFound,
    Operation,
    PanelColumn,
    PreconditionFailed,
    RequiredPermission,
    UiPanel,
    VerbArgument,
)
from gateway.kernel.events import Event
from gateway.kernel.faults import FAULT
from gateway.kernel.plugin_times import PartTimes
from gateway.management.web.limits import HttpLimits
from gateway.plugins.services.offering import Offered, VhostServices
from gateway.testing import FakeClock
from tests.management.client_connection import LOGIN, ClientConnection
from tests.management.console import Console
from tests.protocols.amqp.dialogue import Gateway

BASE = "/plugins/%2F/acme/resources"


def console_with(
    *resources: HttpResource, verbs: tuple[CtlVerb, ...] = (), panels: tuple[UiPanel, ...] = (), **options: Any
) -> Console:
    """Return a console whose virtual hosts have the plugin ``acme`` with these services."""
    services = VhostServices(
        [Offered("acme", resource) for resource in resources],
        [Offered("acme", verb) for verb in verbs],
        [Offered("acme", panel) for panel in panels],
        PartTimes(resources),
    )
    return Console(services=services, **options)


def faults_of(console: Console) -> list[Event]:
    """Return a list that gets the later faults."""
    faults: list[Event] = []
    console.gateway.broker.events.subscribe(lambda event: faults.append(event) if event.name == FAULT else None)
    return faults


def failing(request: HttpRequest) -> object:
    raise ZeroDivisionError("no way")


def rows_that_fail(request: HttpRequest) -> Iterator[object]:
    yield {"n": 1}
    raise RuntimeError("no more")


def cycle() -> list[object]:
    value: list[object] = []
    value.append([value])
    return value


# Answers

ANSWERS = [
    pytest.param(lambda r: {"n": 1}, (200, {"n": 1}), id="an object"),
    pytest.param(lambda r: "text", (200, "text"), id="a text"),
    pytest.param(lambda r: 0, (200, 0), id="a number"),
    pytest.param(lambda r: None, (204, None), id="nothing"),
    pytest.param(lambda r: [], (200, []), id="an empty list"),
    pytest.param(lambda r: [{"n": n} for n in range(50)], (200, [{"n": n} for n in range(50)]), id="a list"),
    pytest.param(lambda r: iter([1, None, 2]), (200, [1, 2]), id="rows with a pause"),
    pytest.param(lambda r: {"b": b"\xff", "f": float("nan")}, (200, {"b": "/w==", "f": "nan"}), id="bytes"),
    pytest.param(lambda r: HttpReply(202, {"n": 1}), (202, {"n": 1}), id="a status"),
    pytest.param(lambda r: HttpReply(404), (404, None), id="a status alone"),
    pytest.param(lambda r: r.names, (200, {"id": "a/b"}), id="the variables"),
]


@pytest.mark.parametrize(("answer", "result"), ANSWERS)
def test_an_answer_is_sent(answer: Callable[[HttpRequest], object], result: tuple[int, object]) -> None:
    console = console_with(HttpResource("things/{id}", answer))
    assert console.ask("GET", f"{BASE}/things/a%2Fb").result == result


def test_a_text_has_its_content_type_and_headers() -> None:
    reply = HttpReply(200, "a,b\n", "text/csv", {"X-Rows": "1"})
    answer = console_with(HttpResource("csv", lambda r: reply)).ask("GET", f"{BASE}/csv")
    assert answer.content == b"a,b\n"
    assert (answer.headers["content-type"], answer.headers["x-rows"]) == ("text/csv", "1")


def test_a_resource_gets_query_body_and_user() -> None:
    def answer(r: HttpRequest) -> object:
        may = [r.permissions.may(operation, "q", "queue") for operation in Operation]
        return [r.method, dict(r.query), r.fields, r.user.name, may]

    console = console_with(HttpResource("echo", answer, "POST"))
    assert console.post(f"{BASE}/echo?a=1", {"b": [2]}) == ["POST", {"a": "1"}, {"b": [2]}, "guest", [True] * 3]
    assert console.ask("POST", f"{BASE}/echo", content=b"[1").result == (
        400, {"error": "bad_request", "reason": "the body is not a JSON object"},
    )  # fmt: skip


def test_a_refusal_is_no_fault() -> None:
    def answer(request: HttpRequest) -> object:
        raise NotFound("no such order") if request.query else PreconditionFailed("which order?")

    console = console_with(HttpResource("orders", answer))
    faults = faults_of(console)
    assert console.ask("GET", f"{BASE}/orders").result == (400, {"error": "bad_request", "reason": "which order?"})
    assert console.ask("GET", f"{BASE}/orders?id=1").result == (404, {"error": "not_found", "reason": "no such order"})
    assert faults == []


def test_the_method_and_the_path_select_the_resource() -> None:
    console = console_with(
        HttpResource("a/list", lambda r: "list"),
        HttpResource("a/{id}", lambda r: r.names["id"]),
        HttpResource("a/{id}", lambda r: HttpReply(201), "PUT"),
    )
    assert [console.get(f"{BASE}/a/{name}") for name in ("list", "other")] == ["list", "other"]
    assert console.ask("PUT", f"{BASE}/a/x", {}).status == 201
    refused = console.ask("DELETE", f"{BASE}/a/x")
    assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS, PUT")
    for path in ("a", "a/b/c", "b", "a//"):
        assert console.ask("GET", f"{BASE}/{path}").status == 404
    assert console.ask("GET", "/plugins/%2F/other/resources/a/list").status == 404
    assert console.ask("GET", "/plugins/absent/acme/resources/a/list").status == 404


# Waiting


def test_an_answer_that_comes_later_is_sent() -> None:
    later: Deferred[object] = Deferred()
    console = console_with(HttpResource("later", lambda r: later))
    transport = console.send("GET", f"{BASE}/later")
    assert transport.value() == b""
    later.callback([1, 2])
    for _ in range(5):
        console.clock.advance(0.01)
        console.gateway.settle()
    assert transport.value().endswith(b"[1,2]")


def test_an_answer_that_never_comes_is_503_after_the_time_limit() -> None:
    console = console_with(HttpResource("never", lambda r: Deferred(), time_limit_s=1.5))
    assert console.ask("GET", f"{BASE}/never").result == (
        503, {"error": "service_unavailable", "reason": "plugin 'acme' did not answer within 1.5 s"},
    )  # fmt: skip


def test_rows_that_never_come_are_503_after_the_time_limit() -> None:
    def rows(request: HttpRequest) -> Iterator[object]:
        while True:
            clock.advance(0.3)
            yield None

    clock = FakeClock()
    console = console_with(HttpResource("rows", rows, time_limit_s=1), gateway=Gateway(clock=clock))
    assert console.ask("GET", f"{BASE}/rows").result == (
        503, {"error": "service_unavailable", "reason": "plugin 'acme' found no row within 1 s"},
    )  # fmt: skip


def test_the_answer_is_cancelled_when_the_client_leaves() -> None:
    cancelled: list[object] = []
    console = console_with(HttpResource("later", lambda r: Deferred(cancelled.append)))
    faults = faults_of(console)
    console.send("GET", f"{BASE}/later").hang_up()
    assert len(cancelled) == 1
    assert faults == []


# Containment

FAULTS = [
    pytest.param(failing, "ZeroDivisionError: no way", id="raises"),
    pytest.param(lambda r: exec("raise SystemExit(3)"), "SystemExit: 3", id="raises SystemExit"),
    pytest.param(lambda r: next(iter(())), "StopIteration", id="raises StopIteration"),
    pytest.param(lambda r: r.fields.nothing, "AttributeError: 'dict' object has no attribute", id="a mistake"),
    pytest.param(lambda r: object(), "which is not JSON: TypeError", id="an object that is not JSON"),
    pytest.param(lambda r: {"a": cycle()}, "which is not JSON: RecursionError", id="a cycle"),
    pytest.param(lambda r: [1, object()], "which is not JSON: TypeError", id="a row that is not JSON"),
    pytest.param(rows_that_fail, "RuntimeError: no more", id="rows that fail"),
    pytest.param(lambda r: HttpReply(99), "status 99, not 200 to 599", id="a status"),
    pytest.param(
        lambda r: HttpReply(200, "", "a/b", {"X": "a\r\nY: b"}),
        "header 'X': 'a",
        id="a header",
    ),
    pytest.param(lambda r: HttpReply(headers={"Content-Length": "5"}), "header 'Content-Length'", id="a length"),
    pytest.param(lambda r: HttpReply(content=b"", content_type="a\nb"), "header 'Content-Type': 'a", id="a type"),
]


@pytest.mark.parametrize(("answer", "error"), FAULTS)
def test_a_resource_that_fails_is_a_fault_and_500(answer: Callable[[HttpRequest], object], error: str) -> None:
    console = console_with(HttpResource("bad", answer))
    faults = faults_of(console)
    assert console.ask("GET", f"{BASE}/bad").result == (
        500, {"error": "plugin_failed", "reason": "plugin 'acme' failed, see the log of the gateway"},
    )  # fmt: skip
    (fault,) = faults
    assert (fault.vhost, fault.subject, fault.details["part"]) == ("/", "GET bad", "GET bad")
    assert error in str(fault.details["error"])
    assert str(fault.details["place"]).startswith(f"{__file__}:")


def test_a_deferred_that_fails_is_a_fault_and_500() -> None:
    later: Deferred[object] = Deferred()
    console = console_with(HttpResource("bad", lambda r: later))
    faults = faults_of(console)
    transport = console.send("GET", f"{BASE}/bad")
    later.errback(KeyError("gone"))
    console.gateway.settle()
    assert b" 500 " in transport.value()
    assert [fault.details["error"] for fault in faults] == ["KeyError: 'gone'"]


def test_a_slow_call_is_a_fault_and_names_the_plugin_as_the_cause_of_the_turn() -> None:
    def slow(request: HttpRequest) -> object:
        clock.advance(0.2)
        return "done"

    clock = FakeClock()
    console = console_with(HttpResource("slow", slow), gateway=Gateway(clock=clock))
    faults = faults_of(console)
    causes: list[str] = []
    console.gateway.broker.journal.budget.on_slow = lambda cause, seconds: causes.append(cause)
    assert console.get(f"{BASE}/slow") == "done"
    assert [fault.details["error"] for fault in faults] == ["Overrun: the call took 200 ms; the limit is 100 ms"]
    assert causes == ["GET slow, vhost '/'"]


def test_the_report_of_a_fault_is_no_time_of_the_plugin() -> None:
    clock = FakeClock()
    console = console_with(HttpResource("bad", failing), gateway=Gateway(clock=clock))
    faults = faults_of(console)
    console.gateway.broker.events.subscribe(lambda event: clock.advance(0.2))
    assert console.ask("GET", f"{BASE}/bad").status == 500
    assert [fault.details["error"] for fault in faults] == ["ZeroDivisionError: no way"]


def test_the_rows_of_a_lost_client_are_closed() -> None:
    closed: list[str] = []

    def rows(request: HttpRequest) -> Iterator[object]:
        try:
            while True:
                yield "x" * 1000
        finally:
            closed.append("closed")
            raise KeyError("also while closing")

    console = console_with(HttpResource("rows", rows))
    faults = faults_of(console)
    client = ClientConnection(console)
    client.ask(f"GET /api{BASE}/rows", LOGIN)
    for _ in range(3):
        client.turn()
    assert b"xxx" in client.received
    client.protocol.connectionLost(Failure(ConnectionDone()))
    assert closed == ["closed"]
    assert [fault.details["error"] for fault in faults] == ["KeyError: 'also while closing'"]


# Access


@pytest.mark.parametrize("tag", ["management", "policymaker", "monitoring", "administrator"])
def test_the_tag_of_a_resource_is_required(tag: Any) -> None:
    console = console_with(HttpResource("a", lambda r: 1, tag=tag))
    console.add_user("tagged", tag)
    console.add_user("untagged")
    assert console.ask("GET", f"{BASE}/a", user="tagged").status == 200
    assert console.ask("GET", f"{BASE}/a", user="untagged").status == 401
    assert console.ask("GET", f"{BASE}/a", user=None).status == 401


def test_a_user_of_another_virtual_host_is_refused() -> None:
    console = console_with(HttpResource("a", lambda r: 1), HttpResource("a", lambda r: 1, "PUT"))
    console.gateway.add_user("outsider", "outsider", "other", (".*", ".*", ".*"), "management")
    console.gateway.add_user("watcher", "watcher", "other", (".*", ".*", ".*"), "monitoring")
    assert console.ask("GET", f"{BASE}/a", user="outsider").status == 401
    assert console.ask("GET", f"{BASE}/a", user="watcher").status == 200
    assert console.ask("PUT", f"{BASE}/a", {}, user="watcher").status == 401


def test_the_permission_of_a_resource_is_required() -> None:
    permission = RequiredPermission(Operation.READ, "queue", "{queue}")
    console = console_with(HttpResource("peek/{queue}", lambda r: 1, permission=permission))
    console.gateway.add_user("reader", "reader", "/", ("", "", "^mine$"), "management")
    console.gateway.add_user("watcher", "watcher", "other", (".*", ".*", ".*"), "monitoring")
    assert console.ask("GET", f"{BASE}/peek/mine", user="reader").status == 200
    assert console.ask("GET", f"{BASE}/peek/other", user="reader").status == 401
    assert console.ask("GET", f"{BASE}/peek/mine", user="watcher").status == 401


def test_a_larger_body_is_refused_before_it_is_received() -> None:
    console = console_with(HttpResource("a", lambda r: len(r.body), "POST", largest_body=10), limits=HttpLimits())
    assert console.ask("POST", f"{BASE}/a", content=b"x" * 10).json == 10
    client = ClientConnection(console)
    client.ask(f"POST /api{BASE}/a", LOGIN, "Content-Length: 11")
    client.wait()
    assert client.answer.status == 413
    assert console.site.connections.bodies.taken == 0


# Listings


def test_services_are_listed_for_those_who_may_use_them() -> None:
    console = console_with(
        HttpResource("orders", lambda r: []),
        HttpResource("orders/{id}", lambda r: None, "DELETE", tag="administrator", description="Deletes one."),
        verbs=(
            CtlVerb("list", "orders", "List.", columns=["id"]),
            CtlVerb("delete", "orders/{id}", "Delete.", "DELETE", [VerbArgument("id", "The order.")]),
        ),
        panels=(UiPanel("Orders", "orders", columns=[PanelColumn("id", "Order"), PanelColumn("size", unit="B")]),),
    )
    console.add_user("some", "management")
    assert [row["method"] for row in console.get(BASE)] == ["GET", "DELETE"]
    assert [row["method"] for row in console.get(BASE, user="some")] == ["GET"]
    assert [row["name"] for row in console.get("/ctl-verbs/%2F")] == ["list", "delete"]
    assert [row["name"] for row in console.get("/ctl-verbs", user="some")] == ["list"]
    (panel,) = console.get("/ui-panels", user="some")
    assert console.get("/ui-panels/%2F") == [panel]
    assert panel == {
        "plugin": "acme", "vhost": "/", "title": "Orders", "description": "", "page": "overview", "kind": "table",
        "path": "/api/plugins/%2F/acme/resources/orders", "query": {}, "refresh_s": 5.0,
        "columns": [{"name": "id", "title": "Order", "unit": ""}, {"name": "size", "title": "size", "unit": "B"}],
    }  # fmt: skip
    assert console.get(panel["path"].removeprefix("/api"), user="some") == []
    assert console.ask("GET", "/plugins/%2F/other/resources").status == 404
    assert console.ask("GET", "/ui-panels/absent").status == 404
