"""Requests of foreign web pages are refused unless a setting allows them."""

import pytest

from gateway.management.http.cross_origin import cross_origin_policy
from tests.management.client_connection import LOGIN, ClientConnection
from tests.management.console import Console

OWN = "http://192.0.2.7:15672"
FOREIGN = "https://evil.example"
ADMINISTRATOR = b'{"users": [{"name": "mallory", "password_hash": "", "tags": "administrator"}]}'

CROSS_SITE = [
    pytest.param(["Content-Type: text/plain", f"Origin: {FOREIGN}"], 403, id="fetch without CORS"),
    pytest.param(["Content-Type: text/plain", "Origin: null"], 403, id="form of a sandboxed frame"),
    pytest.param(["Content-Type: application/json", f"Origin: {FOREIGN}"], 403, id="JSON"),
    pytest.param(["Content-Type: text/plain", "Sec-Fetch-Site: cross-site"], 403, id="no Origin but a site"),
    pytest.param(["Content-Type: text/plain", "Sec-Fetch-Site: same-site"], 403, id="same site"),
    pytest.param(["Content-Type: text/plain", "Referer: https://evil.example/"], 415, id="text of an old browser"),
    pytest.param(["Content-Type: text/plain;charset=UTF-8"], 415, id="text without browser headers"),
    pytest.param(["Content-Type: multipart/form-data; boundary=x"], 415, id="a form with a file"),
    pytest.param(
        ["Content-Type: application/x-www-form-urlencoded", "User-Agent: Mozilla/5.0"], 415, id="form of an old browser"
    ),
    pytest.param([f"Origin: {OWN}.evil.example"], 403, id="a name with our prefix"),
    pytest.param(["Origin: http://192.0.2.7:8080"], 403, id="another port of this host"),
]


@pytest.mark.parametrize(("headers", "status"), CROSS_SITE)
def test_a_foreign_page_cannot_create_an_administrator(console: Console, headers: list[str], status: int) -> None:
    client = ClientConnection(console)
    client.ask("POST /api/definitions", LOGIN, *headers, body=ADMINISTRATOR)
    client.wait()
    assert client.answer.status == status
    assert "mallory" not in console.gateway.broker.directory.user_by_name


FINE = [
    pytest.param(["Content-Type: application/json"], id="a program"),
    pytest.param([], id="a program without headers"),
    pytest.param(["Content-Type: application/x-www-form-urlencoded", "User-Agent: curl/8.5.0"], id="curl -d"),
    pytest.param(
        ["Content-Type: application/json", f"Origin: {OWN}", "Sec-Fetch-Site: same-origin"],
        id="page of the same origin",
    ),
]


@pytest.mark.parametrize("headers", FINE)
def test_requests_of_programs_and_of_the_same_origin_are_allowed(console: Console, headers: list[str]) -> None:
    client = ClientConnection(console)
    client.ask("POST /api/definitions", LOGIN, *headers, body=ADMINISTRATOR)
    client.wait()
    assert client.answer.status == 204
    assert "mallory" in console.gateway.broker.directory.user_by_name


def test_a_foreign_page_cannot_read_but_may_link_to_the_api(console: Console) -> None:
    embedded, visited = ClientConnection(console), ClientConnection(console)
    site = "Sec-Fetch-Site: cross-site"
    embedded.ask("GET /api/users", LOGIN, site, "Sec-Fetch-Mode: no-cors")
    visited.ask("GET /api/whoami", LOGIN, site, "Sec-Fetch-Mode: navigate")
    visited.wait()
    assert [embedded.answer.status, visited.answer.status] == [403, 200]


# DNS rebinding

HOSTS = [
    ("127.0.0.1:15672", 200), ("localhost:15672", 200), ("LOCALHOST", 200), ("[::1]:15672", 200),
    ("192.0.2.7", 200), ("me.localhost:15672", 200),
    ("evil.example:15672", 403), ("127.0.0.1.evil.example", 403), ("", 403), ("localhost:x", 403), ("a@localhost", 403),
]  # fmt: skip


def _whoami(console: Console, host: str, own_host: str) -> int:
    client = ClientConnection(console, own_host)
    client.send(f"GET /api/whoami HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n{LOGIN}\r\n\r\n".encode())
    client.wait()
    return client.answer.status


@pytest.mark.parametrize(("host", "status"), HOSTS)
def test_an_unknown_host_name_is_refused_at_loopback(console: Console, host: str, status: int) -> None:
    assert _whoami(console, host, "127.0.0.1") == status


def test_a_setting_allows_other_host_names() -> None:
    console = Console(cross_origin_policy=cross_origin_policy([], ["Broker.example"], 0))
    assert _whoami(console, "broker.example:15672", "127.0.0.1") == 200
    assert _whoami(console, "evil.example:15672", "127.0.0.1") == 403
    assert _whoami(console, "evil.example:15672", "192.0.2.7") == 403
    assert (
        _whoami(Console(cross_origin_policy=cross_origin_policy([], ["*"], 0)), "evil.example:15672", "127.0.0.1")
        == 200
    )


def test_other_addresses_accept_any_host_name_by_default(console: Console) -> None:
    assert _whoami(console, "broker.example:15672", "192.0.2.7") == 200


# CORS


def test_cors_headers_follow_the_setting() -> None:
    console = Console(cross_origin_policy=cross_origin_policy(["https://console.example"], [], 600))
    client = ClientConnection(console)
    ask = ["Access-Control-Request-Method: PUT", "Access-Control-Request-Headers: authorization"]
    client.ask("OPTIONS /api/queues/%2F/q", "Origin: https://console.example", *ask)
    headers = client.answer.headers
    assert client.answer.status == 200
    assert headers["access-control-allow-origin"] == "https://console.example"
    assert headers["access-control-allow-methods"] == "HEAD, GET, PUT, DELETE, OPTIONS"
    assert headers["access-control-allow-headers"] == "Authorization, Content-Type, X-Reason"
    assert headers["access-control-max-age"] == "600"
    assert "Origin" in headers["vary"]
    real = ClientConnection(console)
    real.ask("GET /api/whoami", LOGIN, "Origin: https://console.example", "Sec-Fetch-Site: cross-site")
    real.wait()
    assert real.answer.headers["access-control-allow-origin"] == "https://console.example"
    foreign = ClientConnection(console)
    foreign.ask("OPTIONS /api/queues/%2F/q", f"Origin: {FOREIGN}", *ask)
    assert foreign.answer.status == 403
    assert "access-control-allow-origin" not in foreign.answer.headers


def test_without_a_setting_there_are_no_cors_headers(console: Console) -> None:
    client = ClientConnection(console)
    client.ask("OPTIONS /api/queues/%2F/q", f"Origin: {OWN}")
    assert client.answer.status == 200
    assert not [name for name in client.answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/whoami"), ("GET", "/nowhere"), ("GET", "/queues"), ("DELETE", "/vhosts/none")]
)
def test_every_response_has_the_security_headers(console: Console, method: str, path: str) -> None:
    headers = console.ask(method, path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["referrer-policy"] == "no-referrer"
    assert "no-store" in headers["cache-control"]
