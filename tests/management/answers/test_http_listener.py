"""The HTTP listener: no memory for unauthenticated clients, and a timeout for every wait."""

import gc
import itertools
import logging
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from gateway.access import Credentials, Principal
from gateway.logs.fields import FIELDS
from gateway.management.http.site import LOGIN_TIMEOUT_S
from gateway.management.web.connection import MAX_HEADERS
from gateway.management.web.limits import HttpLimits
from tests.management.client_connection import LOGIN, WRONG_LOGIN, ClientConnection
from tests.management.console import BODY_LIMIT, Console

BODY = b'{"durable": true}'


# Authentication


@pytest.mark.parametrize("login", ["X-Nothing: 1", WRONG_LOGIN, "Authorization: Bearer x"])
def test_a_body_is_not_received_before_authentication(console: Console, login: str) -> None:
    client = ClientConnection(console)
    client.ask("PUT /api/queues/%2F/q", login, "Content-Length: 60000")
    assert client.answer.status == 401
    assert client.answer.headers["connection"] == "close"
    client.send(b"x" * 30_000)
    assert console.site.connections.bodies.taken == 0


def test_a_body_waits_for_a_login_in_progress(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts: list[Callable[[Principal | None], None]] = []

    def authenticate(credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        verdicts.append(answer)

    monkeypatch.setattr(console.gateway.settings.login, "authenticate", authenticate)
    client = ClientConnection(console)
    client.ask("PUT /api/queues/%2F/q", LOGIN, "Content-Length: 60000")
    client.send(b"{" + b" " * 20_000)
    assert client.transport.producerState == "paused"
    assert console.site.connections.bodies.taken == 0
    verdicts[0](Principal("guest", frozenset({"administrator"})))
    client.wait()
    assert console.site.connections.bodies.taken == 60_000
    client.send(b" " * 39_998 + b"}")
    client.wait()
    assert client.answer.status == 201
    assert console.site.connections.bodies.taken == 0


def test_a_login_that_is_never_answered_is_refused(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin may ask a service that does not answer."""
    verdicts: list[Callable[[Principal | None], None]] = []
    monkeypatch.setattr(console.gateway.settings.login, "authenticate", lambda _, answer: verdicts.append(answer))
    client = ClientConnection(console)
    client.ask("PUT /api/queues/%2F/q", LOGIN, body=BODY)
    console.clock.advance(LOGIN_TIMEOUT_S)
    client.wait()
    assert client.answer.status == 503
    assert client.answer.json["reason"] == "the login took too long"
    verdicts[0](Principal("guest", frozenset({"administrator"})))
    client.wait()
    assert "q" not in console.gateway.vhost.queue_by_name


def test_a_disconnect_during_a_login_is_harmless(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts: list[Callable[[Principal | None], None]] = []
    monkeypatch.setattr(console.gateway.settings.login, "authenticate", lambda _, answer: verdicts.append(answer))
    client = ClientConnection(console)
    client.ask("PUT /api/queues/%2F/q", LOGIN, body=BODY)
    client.hang_up()
    verdicts[0](Principal("guest", frozenset({"administrator"})))
    client.wait()
    assert "q" not in console.gateway.vhost.queue_by_name


def test_100_continue_is_sent_after_authentication(console: Console) -> None:
    refused, taken = ClientConnection(console), ClientConnection(console)
    refused.ask("PUT /api/queues/%2F/q", WRONG_LOGIN, "Content-Length: 17", "Expect: 100-continue")
    assert refused.received.startswith(b"HTTP/1.1 401 ")
    taken.ask("PUT /api/queues/%2F/q", LOGIN, "Content-Length: 17", "Expect: 100-continue")
    assert taken.received == b"HTTP/1.1 100 Continue\r\n\r\n"
    taken.send(BODY)
    taken.wait()
    assert b"HTTP/1.1 201 " in taken.received


# Timeouts


@pytest.mark.parametrize(("login", "promotions"), [(LOGIN, 1), (WRONG_LOGIN, 0), ("X-None: 1", 0)])
def test_a_connection_is_polled_at_normal_priority_once_its_client_has_logged_in(
    console: Console, login: str, promotions: int
) -> None:
    client = ClientConnection(console)
    promoted: list[int] = []
    client.transport.promote = lambda: promoted.append(1)
    client.ask("GET /api/whoami", login)
    client.wait()
    assert len(promoted) == promotions


def test_a_slow_head_is_refused(console: Console) -> None:
    silent, slow = ClientConnection(console), ClientConnection(console)
    slow.send(b"GET /api/overview HTTP/1.1\r\n")
    for _ in range(11):
        silent.wait(1)
        slow.send(b"X: y\r\n")
    assert (silent.is_closed, silent.received) == (True, b"")
    assert (slow.is_closed, slow.answer.status) == (True, 408)
    assert len(console.site.connections) == 0


def test_a_body_below_the_minimum_rate_is_refused(console: Console) -> None:
    client = ClientConnection(console)
    client.ask("PUT /api/queues/%2F/q", LOGIN, "Content-Length: 60000")
    for _ in range(12):
        client.send(b" " * 10)
        client.wait(0.5)
    assert (client.is_closed, client.answer.status) == (True, 408)
    assert console.site.connections.bodies.taken == 0


def test_a_body_at_the_minimum_rate_is_received(console: Console) -> None:
    client = ClientConnection(console)
    client.ask("PUT /api/queues/%2F/q", LOGIN, "Content-Length: 40000")
    for _ in range(20):
        client.send(b" " * 1_900)
        client.wait(1)
    client.send(b" " * 1_998 + b"{}")
    client.wait()
    assert client.answer.status == 201


def test_an_idle_connection_is_closed(console: Console) -> None:
    client = ClientConnection(console)
    client.ask("GET /api/whoami", LOGIN)
    client.wait()
    client.wait(59)
    assert not client.is_closed
    client.wait(2)
    assert client.is_closed


def test_a_client_that_stops_reading_is_disconnected(console: Console) -> None:
    for number in range(300):
        console.gateway.vhost.declare_queue(f"q{number:03}")
    client = ClientConnection(console)
    client.ask("GET /api/queues", LOGIN)
    client.transport.producer.pauseProducing()
    client.wait(59)
    assert not client.is_closed
    client.wait(2)
    assert client.is_closed
    assert len(console.clock.getDelayedCalls()) == 0


# Limits


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        ([f"X-{number}: y" for number in range(MAX_HEADERS)], 431),
        (["X-Long: " + "y" * 20_000], 431),
        ([f"Content-Length: {'9' * 5000}"], 400),
        (["Content-Length: 5", "Content-Length: 6"], 400),
        (["Content-Length: +5"], 400),
        (["Content-Length: ²"], 400),
        (["Transfer-Encoding: gzip"], 501),
        (["no colon"], 400),
        (["X: a\x00b"], 400),
        ([f"Content-Length: {BODY_LIMIT + 1}"], 413),
    ],
    ids=["count", "size", "digits", "two lengths", "sign", "superscript", "coding", "colon", "nul", "body"],
)
def test_a_malformed_or_too_large_head_is_refused(console: Console, lines: list[str], status: int) -> None:
    client = ClientConnection(console)
    client.ask("PUT /api/queues/%2F/q", LOGIN, *lines)
    assert (client.answer.status, client.answer.headers["connection"]) == (status, "close")
    assert client.answer.json["error"] == "bad_request"


@pytest.mark.parametrize("piece", [4_000, 30_000], ids=["in pieces", "whole"])
def test_a_query_that_is_too_long_is_a_bad_request(console: Console, piece: int) -> None:
    client = ClientConnection(console)
    head = b"GET /api/queues?name=" + b"y" * 20_000 + b" HTTP/1.1\r\nHost: 192.0.2.7:15672\r\n\r\n"
    for start in range(0, len(head), piece):
        client.send(head[start : start + piece])
    assert (client.answer.status, client.answer.headers["connection"]) == (400, "close")
    assert client.answer.json == {"error": "bad_request", "reason": "the path and the query are too long"}


def test_a_long_query_within_the_limit_of_a_head_is_answered(console: Console) -> None:
    client = ClientConnection(console)
    client.ask("GET /api/queues?unknown=" + "y" * 15_000, LOGIN)
    client.wait()
    assert client.answer.status == 200


def test_a_chunk_above_the_limit_is_refused_while_it_is_received(console: Console) -> None:
    client = ClientConnection(console)
    client.ask("PUT /api/queues/%2F/q", LOGIN, "Transfer-Encoding: chunked")
    client.send(b"fffffffffff\r\n")
    for _ in range(10):
        client.send(b" " * 10_000)
    assert client.answer.status == 413
    assert console.site.connections.bodies.taken == 0


def test_bodies_share_a_memory_limit() -> None:
    console = Console(limits=HttpLimits(max_body_size=60_000, max_bodies_size=100_000))
    lines = [ClientConnection(console) for _ in range(2)]
    for client in lines:
        client.ask("PUT /api/queues/%2F/q", LOGIN, "Content-Length: 60000")
        client.wait()
    assert (lines[1].answer.status, lines[1].answer.headers["retry-after"]) == (503, "1")
    assert lines[0].received == b""
    lines[0].hang_up()
    assert console.site.connections.bodies.taken == 0


def test_a_new_connection_replaces_the_one_idle_for_longest() -> None:
    console = Console(limits=HttpLimits(max_connections=3))
    lines = [ClientConnection(console) for _ in range(3)]
    lines[0].ask("GET /api/whoami", LOGIN)
    lines[0].wait()
    newcomer = ClientConnection(console)
    newcomer.ask("GET /api/whoami", LOGIN)
    newcomer.wait()
    assert newcomer.answer.status == 200
    assert [client.is_closed for client in lines] == [False, True, False]
    assert len(console.site.connections) == 3


def test_a_new_connection_is_refused_if_all_others_are_busy() -> None:
    console = Console(limits=HttpLimits(max_connections=1))
    busy = ClientConnection(console)
    busy.ask("PUT /api/queues/%2F/q", LOGIN, "Content-Length: 17")
    newcomer = ClientConnection(console)
    assert (newcomer.answer.status, newcomer.answer.json["error"]) == (503, "too_many_connections")
    assert newcomer.is_closed
    busy.send(BODY)
    busy.wait()
    assert busy.answer.status == 201


def test_pipelined_requests_are_answered_one_per_turn(console: Console) -> None:
    client = ClientConnection(console)
    request = f"GET /api/whoami HTTP/1.1\r\nHost: x\r\n{LOGIN}\r\n\r\n".encode()
    client.send(request * 20)
    counts = []
    for _ in range(80):
        counts.append(client.received.count(b"HTTP/1.1 200 "))
        client.turn()
    assert counts[-1] == 20
    assert max(after - before for before, after in itertools.pairwise(counts)) == 1


def test_a_client_that_stops_reading_holds_little_memory_and_frees_it(console: Console) -> None:
    """A closed connection leaves no reference cycle: its memory is freed without the garbage collector."""
    for number in range(1500):
        console.gateway.vhost.declare_queue(f"q{number:04}")
    gc.collect()
    gc.disable()
    try:
        client = ClientConnection(console)
        client.ask("GET /api/queues", LOGIN)
        for _ in range(1000):
            client.turn()
            if client.received:
                break
        client.transport.producer.pauseProducing()
        client.wait(5)
        assert 0 < len(client.received) < 300_000
        seen = [weakref.ref(client.protocol), weakref.ref(client.protocol._request)]
        client.hang_up()
        client.wait(1)
        client.transport.producer = None  # as a real transport does when it closes
        client.protocol = client.transport = None
        assert [each() for each in seen] == [None, None]
    finally:
        gc.enable()


# Logging


HOSTILE = [
    b"GET /\x9d HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /api/ HTTP/1.1\r\nHost: \xff\r\n\r\n",
    b"GET /api/\xff\xfe HTTP/1.1\r\nHost: \xff\xff\r\n\r\n",
    b"PUT /api/queues HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"\x00" * 100,
    b"GET http://[::1 HTTP/1.1\r\nHost: [::1\r\n\r\n",
    b"GET /api/queues/%FF%C3 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET * HTTP/1.1\r\nHost: x\r\n\r\n",
    b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /api/whoami?" + b"a&" * 3000 + b" HTTP/1.1\r\nHost: x\r\n" + LOGIN.encode() + b"\r\n\r\n",
    b"G\xcbT / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /api/ HTTP/9.9\r\nHost: x\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET /api/ HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"GET /api/whoami HTTP/1.1\r\nHost: x\r\nOrigin: http://[\r\n\r\n",
    b"GET /api/whoami HTTP/1.1\r\nHost: x:99999999\r\nOrigin: http://x:y\r\n\r\n",
]


@pytest.mark.parametrize("data", HOSTILE)
@pytest.mark.parametrize("own_host", ["192.0.2.7", "127.0.0.1"])
def test_malformed_requests_log_no_traceback(
    console: Console, data: bytes, own_host: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client = ClientConnection(console, own_host)
    client.send(data)
    client.wait()
    client.send(b"\r\n\r\n")
    client.wait(20)
    assert client.is_closed or client.answer.status < 500
    if client.received:
        assert client.answer.status in (400, 401, 403, 404, 405, 408, 431)
    assert_quiet(caplog)


def test_log_lines_about_hostile_input_are_rate_limited(console: Console, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for _ in range(50):
        ClientConnection(console).send(b"\x00\r\n\r\n")
    console.clock.advance(11)
    ClientConnection(console).send(b"\x00\r\n\r\n")
    lines = [record for record in caplog.records if record.getMessage() == "request refused"]
    assert len(lines) == 2
    assert getattr(lines[1], FIELDS)["left_out"] == 49


def assert_quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Assert that the log contains no traceback and no internal error."""
    faults: list[Any] = [record for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info]
    assert faults == []
    assert "Traceback" not in caplog.text
