"""Requests of foreign pages change nothing and read nothing, unless a setting lets them."""

import pytest

from gateway.management.http.cross_origin import cross_origin_policy
from tests.management.console import Console
from tests.management.http_line import LOGIN, Line

OWN = "http://192.0.2.7:15672"
FOREIGN = "https://evil.example"
ADMINISTRATOR = b'{"users": [{"name": "mallory", "password_hash": "", "tags": "administrator"}]}'

CROSS_SITE = [
    pytest.param(["Content-Type: text/plain", f"Origin: {FOREIGN}"], 403, id="fetch without CORS"),
    pytest.param(["Content-Type: text/plain", "Origin: null"], 403, id="a sandboxed frame's form"),
    pytest.param(["Content-Type: application/json", f"Origin: {FOREIGN}"], 403, id="JSON"),
    pytest.param(["Content-Type: text/plain", "Sec-Fetch-Site: cross-site"], 403, id="no Origin but a site"),
    pytest.param(["Content-Type: text/plain", "Sec-Fetch-Site: same-site"], 403, id="a neighbour's site"),
    pytest.param(["Content-Type: text/plain", "Referer: https://evil.example/"], 415, id="an old browser's text"),
    pytest.param(["Content-Type: text/plain;charset=UTF-8"], 415, id="text without a word of a page"),
    pytest.param(["Content-Type: multipart/form-data; boundary=x"], 415, id="a form with a file"),
    pytest.param(
        ["Content-Type: application/x-www-form-urlencoded", "User-Agent: Mozilla/5.0"], 415, id="an old browser's form"
    ),
    pytest.param([f"Origin: {OWN}.evil.example"], 403, id="a name that begins like ours"),
    pytest.param(["Origin: http://192.0.2.7:8080"], 403, id="another port of this host"),
]


@pytest.mark.parametrize(("headers", "status"), CROSS_SITE)
def test_a_foreign_page_makes_no_administrator(console: Console, headers: list[str], status: int) -> None:
    line = Line(console)
    line.ask("POST /api/definitions", LOGIN, *headers, body=ADMINISTRATOR)
    line.wait()
    assert line.answer.status == status
    assert "mallory" not in console.gateway.broker.directory.user_by_name


FINE = [
    pytest.param(["Content-Type: application/json"], id="a program"),
    pytest.param([], id="a program that says nothing"),
    pytest.param(["Content-Type: application/x-www-form-urlencoded", "User-Agent: curl/8.5.0"], id="curl -d"),
    pytest.param(["Content-Type: application/json", f"Origin: {OWN}", "Sec-Fetch-Site: same-origin"], id="own page"),
]


@pytest.mark.parametrize("headers", FINE)
def test_programs_and_the_own_page_are_let_in(console: Console, headers: list[str]) -> None:
    line = Line(console)
    line.ask("POST /api/definitions", LOGIN, *headers, body=ADMINISTRATOR)
    line.wait()
    assert line.answer.status == 204
    assert "mallory" in console.gateway.broker.directory.user_by_name


def test_a_foreign_page_reads_nothing_but_may_be_left_for_ours(console: Console) -> None:
    embedded, visited = Line(console), Line(console)
    site = "Sec-Fetch-Site: cross-site"
    embedded.ask("GET /api/users", LOGIN, site, "Sec-Fetch-Mode: no-cors")
    visited.ask("GET /api/whoami", LOGIN, site, "Sec-Fetch-Mode: navigate")
    visited.wait()
    assert [embedded.answer.status, visited.answer.status] == [403, 200]


# Names that lead here (DNS rebinding)

HOSTS = [
    ("127.0.0.1:15672", 200), ("localhost:15672", 200), ("LOCALHOST", 200), ("[::1]:15672", 200),
    ("192.0.2.7", 200), ("me.localhost:15672", 200),
    ("evil.example:15672", 403), ("127.0.0.1.evil.example", 403), ("", 403), ("localhost:x", 403), ("a@localhost", 403),
]  # fmt: skip


def _whoami(console: Console, host: str, own_host: str) -> int:
    line = Line(console, own_host)
    line.send(f"GET /api/whoami HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n{LOGIN}\r\n\r\n".encode())
    line.wait()
    return line.answer.status


@pytest.mark.parametrize(("host", "status"), HOSTS)
def test_a_name_that_only_foreign_dns_leads_here_is_refused_at_loopback(
    console: Console, host: str, status: int
) -> None:
    assert _whoami(console, host, "127.0.0.1") == status


def test_other_names_are_allowed_by_setting() -> None:
    console = Console(cross_origin_policy=cross_origin_policy([], ["Broker.example"], 0))
    assert _whoami(console, "broker.example:15672", "127.0.0.1") == 200
    assert _whoami(console, "evil.example:15672", "127.0.0.1") == 403
    assert _whoami(console, "evil.example:15672", "192.0.2.7") == 403
    assert (
        _whoami(Console(cross_origin_policy=cross_origin_policy([], ["*"], 0)), "evil.example:15672", "127.0.0.1")
        == 200
    )


def test_where_nothing_is_set_other_addresses_have_any_name(console: Console) -> None:
    assert _whoami(console, "broker.example:15672", "192.0.2.7") == 200


# CORS


def test_cors_is_answered_by_setting() -> None:
    console = Console(cross_origin_policy=cross_origin_policy(["https://console.example"], [], 600))
    line = Line(console)
    ask = ["Access-Control-Request-Method: PUT", "Access-Control-Request-Headers: authorization"]
    line.ask("OPTIONS /api/queues/%2F/q", "Origin: https://console.example", *ask)
    headers = line.answer.headers
    assert line.answer.status == 200
    assert headers["access-control-allow-origin"] == "https://console.example"
    assert headers["access-control-allow-methods"] == "HEAD, GET, PUT, DELETE, OPTIONS"
    assert headers["access-control-allow-headers"] == "Authorization, Content-Type, X-Reason"
    assert headers["access-control-max-age"] == "600"
    assert "Origin" in headers["vary"]
    real = Line(console)
    real.ask("GET /api/whoami", LOGIN, "Origin: https://console.example", "Sec-Fetch-Site: cross-site")
    real.wait()
    assert real.answer.headers["access-control-allow-origin"] == "https://console.example"
    foreign = Line(console)
    foreign.ask("OPTIONS /api/queues/%2F/q", f"Origin: {FOREIGN}", *ask)
    assert foreign.answer.status == 403
    assert "access-control-allow-origin" not in foreign.answer.headers


def test_without_a_setting_nothing_is_said_of_cors(console: Console) -> None:
    line = Line(console)
    line.ask("OPTIONS /api/queues/%2F/q", f"Origin: {OWN}")
    assert line.answer.status == 200
    assert not [name for name in line.answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/whoami"), ("GET", "/nowhere"), ("GET", "/queues"), ("DELETE", "/vhosts/none")]
)
def test_every_answer_tells_browsers_to_make_no_page_of_it(console: Console, method: str, path: str) -> None:
    headers = console.ask(method, path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["referrer-policy"] == "no-referrer"
    assert "no-store" in headers["cache-control"]
