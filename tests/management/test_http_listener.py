"""The HTTP listener: nothing is held for clients that have not logged in, and every wait ends."""

import gc
import itertools
import logging
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from gateway.access import Credentials, Principal
from gateway.logs.structured import FIELDS
from gateway.management.web.connection import MAX_HEADERS
from gateway.management.web.limits import HttpLimits
from tests.management.console import BODY_LIMIT, Console
from tests.management.http_line import LOGIN, WRONG_LOGIN, Line

BODY = b'{"durable": true}'


# Before the login


@pytest.mark.parametrize("login", ["X-Nothing: 1", WRONG_LOGIN, "Authorization: Bearer x"])
def test_a_body_is_not_received_before_its_sender_is_known(console: Console, login: str) -> None:
    line = Line(console)
    line.ask("PUT /api/queues/%2F/q", login, "Content-Length: 60000")
    assert line.answer.status == 401
    assert line.answer.headers["connection"] == "close"
    line.send(b"x" * 30_000)
    assert console.site.bodies.taken == 0


def test_a_body_waits_while_the_login_is_judged(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts: list[Callable[[Principal | None], None]] = []

    def judge(credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        verdicts.append(answer)

    monkeypatch.setattr(console.gateway.settings.login, "authenticate", judge)
    line = Line(console)
    line.ask("PUT /api/queues/%2F/q", LOGIN, "Content-Length: 60000")
    line.send(b"{" + b" " * 20_000)
    assert line.transport.producerState == "paused"
    assert console.site.bodies.taken == 0
    verdicts[0](Principal("guest", frozenset({"administrator"})))
    line.wait()
    assert console.site.bodies.taken == 60_000
    line.send(b" " * 39_998 + b"}")
    line.wait()
    assert line.answer.status == 201
    assert console.site.bodies.taken == 0


def test_a_client_that_leaves_while_it_is_judged_does_no_harm(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdicts: list[Callable[[Principal | None], None]] = []
    monkeypatch.setattr(console.gateway.settings.login, "authenticate", lambda _, answer: verdicts.append(answer))
    line = Line(console)
    line.ask("PUT /api/queues/%2F/q", LOGIN, body=BODY)
    line.hang_up()
    verdicts[0](Principal("guest", frozenset({"administrator"})))
    line.wait()
    assert "q" not in console.gateway.vhost.queue_by_name


def test_who_expects_to_be_asked_for_a_body_is_asked_once_logged_in(console: Console) -> None:
    refused, taken = Line(console), Line(console)
    refused.ask("PUT /api/queues/%2F/q", WRONG_LOGIN, "Content-Length: 17", "Expect: 100-continue")
    assert refused.received.startswith(b"HTTP/1.1 401 ")
    taken.ask("PUT /api/queues/%2F/q", LOGIN, "Content-Length: 17", "Expect: 100-continue")
    assert taken.received == b"HTTP/1.1 100 Continue\r\n\r\n"
    taken.send(BODY)
    taken.wait()
    assert b"HTTP/1.1 201 " in taken.received


# Time


@pytest.mark.parametrize(("login", "promotions"), [(LOGIN, 1), (WRONG_LOGIN, 0), ("X-None: 1", 0)])
def test_a_connection_is_polled_at_normal_priority_once_its_client_has_logged_in(
    console: Console, login: str, promotions: int
) -> None:
    line = Line(console)
    promoted: list[int] = []
    line.transport.promote = lambda: promoted.append(1)
    line.ask("GET /api/whoami", login)
    line.wait()
    assert len(promoted) == promotions


def test_a_head_has_to_come_in_time(console: Console) -> None:
    silent, dripping = Line(console), Line(console)
    dripping.send(b"GET /api/overview HTTP/1.1\r\n")
    for _ in range(11):
        silent.wait(1)
        dripping.send(b"X: y\r\n")
    assert (silent.is_closed, silent.received) == (True, b"")
    assert (dripping.is_closed, dripping.answer.status) == (True, 408)
    assert len(console.site) == 0


def test_a_body_that_drips_is_refused(console: Console) -> None:
    line = Line(console)
    line.ask("PUT /api/queues/%2F/q", LOGIN, "Content-Length: 60000")
    for _ in range(12):
        line.send(b" " * 10)
        line.wait(0.5)
    assert (line.is_closed, line.answer.status) == (True, 408)
    assert console.site.bodies.taken == 0


def test_a_body_that_comes_slowly_but_steadily_is_taken(console: Console) -> None:
    line = Line(console)
    line.ask("PUT /api/queues/%2F/q", LOGIN, "Content-Length: 40000")
    for _ in range(20):
        line.send(b" " * 1_900)
        line.wait(1)
    line.send(b" " * 1_998 + b"{}")
    line.wait()
    assert line.answer.status == 201


def test_an_idle_connection_ends(console: Console) -> None:
    line = Line(console)
    line.ask("GET /api/whoami", LOGIN)
    line.wait()
    line.wait(59)
    assert not line.is_closed
    line.wait(2)
    assert line.is_closed


def test_a_client_that_takes_nothing_is_cut_off(console: Console) -> None:
    for number in range(300):
        console.gateway.vhost.declare_queue(f"q{number:03}")
    line = Line(console)
    line.ask("GET /api/queues", LOGIN)
    line.transport.producer.pauseProducing()
    line.wait(59)
    assert not line.is_closed
    line.wait(2)
    assert line.is_closed
    assert len(console.clock.getDelayedCalls()) == 0


# Amounts


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
def test_what_is_too_much_or_no_head_is_refused(console: Console, lines: list[str], status: int) -> None:
    line = Line(console)
    line.ask("PUT /api/queues/%2F/q", LOGIN, *lines)
    assert (line.answer.status, line.answer.headers["connection"]) == (status, "close")
    assert line.answer.json["error"] == "bad_request"


def test_a_chunk_larger_than_what_is_taken_is_refused_as_it_comes(console: Console) -> None:
    line = Line(console)
    line.ask("PUT /api/queues/%2F/q", LOGIN, "Transfer-Encoding: chunked")
    line.send(b"fffffffffff\r\n")
    for _ in range(10):
        line.send(b" " * 10_000)
    assert line.answer.status == 413
    assert console.site.bodies.taken == 0


def test_bodies_share_an_amount_of_memory() -> None:
    console = Console(limits=HttpLimits(max_body_size=60_000, max_bodies_size=100_000))
    lines = [Line(console) for _ in range(2)]
    for line in lines:
        line.ask("PUT /api/queues/%2F/q", LOGIN, "Content-Length: 60000")
        line.wait()
    assert (lines[1].answer.status, lines[1].answer.headers["retry-after"]) == (503, "1")
    assert lines[0].received == b""
    lines[0].hang_up()
    assert console.site.bodies.taken == 0


def test_a_newcomer_takes_the_place_of_who_has_been_idle_for_longest() -> None:
    console = Console(limits=HttpLimits(max_connections=3))
    lines = [Line(console) for _ in range(3)]
    lines[0].ask("GET /api/whoami", LOGIN)
    lines[0].wait()
    newcomer = Line(console)
    newcomer.ask("GET /api/whoami", LOGIN)
    newcomer.wait()
    assert newcomer.answer.status == 200
    assert [line.is_closed for line in lines] == [False, True, False]
    assert len(console.site) == 3


def test_when_all_connections_have_work_a_newcomer_is_refused() -> None:
    console = Console(limits=HttpLimits(max_connections=1))
    busy = Line(console)
    busy.ask("PUT /api/queues/%2F/q", LOGIN, "Content-Length: 17")
    newcomer = Line(console)
    assert (newcomer.answer.status, newcomer.answer.json["error"]) == (503, "too_many_connections")
    assert newcomer.is_closed
    busy.send(BODY)
    busy.wait()
    assert busy.answer.status == 201


def test_requests_that_come_all_at_once_are_answered_one_a_turn(console: Console) -> None:
    line = Line(console)
    request = f"GET /api/whoami HTTP/1.1\r\nHost: x\r\n{LOGIN}\r\n\r\n".encode()
    line.send(request * 20)
    counts = []
    for _ in range(80):
        counts.append(line.received.count(b"HTTP/1.1 200 "))
        line.turn()
    assert counts[-1] == 20
    assert max(after - before for before, after in itertools.pairwise(counts)) == 1


def test_a_reader_that_stops_holds_little_and_its_end_frees_it(console: Console) -> None:
    """A connection that ended leaves no cycle: what it held goes without the garbage collector."""
    for number in range(1500):
        console.gateway.vhost.declare_queue(f"q{number:04}")
    gc.collect()
    gc.disable()
    try:
        line = Line(console)
        line.ask("GET /api/queues", LOGIN)
        for _ in range(1000):
            line.turn()
            if line.received:
                break
        line.transport.producer.pauseProducing()
        line.wait(5)
        assert 0 < len(line.received) < 300_000
        seen = [weakref.ref(line.protocol), weakref.ref(line.protocol._request)]
        line.hang_up()
        line.wait(1)
        line.transport.producer = None  # as a real transport does at its end
        line.protocol = line.transport = None
        assert [each() for each in seen] == [None, None]
    finally:
        gc.enable()


# The log


HOSTILE = [
    b"GET /\x9d HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n",
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
    b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"GET /api/whoami HTTP/1.1\r\nHost: x\r\nOrigin: http://[\r\n\r\n",
    b"GET /api/whoami HTTP/1.1\r\nHost: x:99999999\r\nOrigin: http://x:y\r\n\r\n",
]


@pytest.mark.parametrize("data", HOSTILE)
@pytest.mark.parametrize("own_host", ["192.0.2.7", "127.0.0.1"])
def test_bytes_that_are_no_request_write_no_traceback(
    console: Console, data: bytes, own_host: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    line = Line(console, own_host)
    line.send(data)
    line.wait()
    line.send(b"\r\n\r\n")
    line.wait(20)
    assert line.is_closed or line.answer.status < 500
    if line.received:
        assert line.answer.status in (400, 401, 403, 404, 405, 408, 431)
    assert_quiet(caplog)


def test_hostile_input_costs_one_line_in_a_while(console: Console, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    for _ in range(50):
        Line(console).send(b"\x00\r\n\r\n")
    console.clock.advance(11)
    Line(console).send(b"\x00\r\n\r\n")
    lines = [record for record in caplog.records if record.getMessage() == "request refused"]
    assert len(lines) == 2
    assert getattr(lines[1], FIELDS)["left_out"] == 49


def assert_quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Insist that the log holds no traceback and nothing that is our fault."""
    faults: list[Any] = [record for record in caplog.records if record.levelno >= logging.ERROR or record.exc_info]
    assert faults == []
    assert "Traceback" not in caplog.text
