"""The HTTP API over TLS."""

import json
import signal
import socket
import ssl
from base64 import b64encode
from collections.abc import Mapping
from http.client import HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any, Final

import pytest

from tests.broker.tls.certificates import Authority
from tests.management_client import get
from tests.running import Gateway

LOGIN: Final = {"Authorization": f"Basic {b64encode(b'guest:guest').decode()}"}
FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def started(authority: Authority, gateway: Gateway) -> Gateway:
    certificate, key = authority.sign("broker")
    return gateway.start(f"tls.certificate={certificate}", f"tls.key={key}")


def ask(
    gateway: Gateway, authority: Authority, method: str, path: str, headers: Mapping[str, str], body: str | None = None
) -> tuple[HTTPResponse, Any]:
    """Send a request over TLS; return the response and its JSON."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    connection = HTTPSConnection(*gateway.addresses["management_tls"], timeout=10, context=context)
    connection.request(method, f"/api{path}", body, dict(headers))
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response, json.loads(content) if content else None


def test_the_api_answers_with_and_without_tls(started: Gateway, authority: Authority) -> None:
    response, user = ask(started, authority, "GET", "/whoami", LOGIN)
    assert (response.status, user["name"]) == (200, "guest")
    assert get(started, "whoami") == user
    listeners = {each["protocol"]: each["port"] for each in get(started, "overview")["listeners"]}
    assert listeners["https"] == started.addresses["management_tls"][1]
    assert {"http", "amqp/ssl", "mqtt/ssl", "stomp/ssl", "http/web-mqtt", "http/web-stomp"} <= set(listeners)
    _, check = ask(started, authority, "GET", "/health/checks/protocol-listener/https", LOGIN)
    assert check == {"status": "ok", "protocol": "https"}


@pytest.mark.parametrize("listener", ["management_tls", "amqps", "mqtts", "stomps", "prometheus_tls"])
def test_clients_that_offer_protocols_are_served(started: Gateway, authority: Authority, listener: str) -> None:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.set_alpn_protocols(["h2", "http/1.1"])  # as browsers do
    with (
        socket.create_connection(started.addresses[listener], timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
    ):
        assert secure.selected_alpn_protocol() is None
        assert secure.version() == "TLSv1.3"


def test_a_login_over_tls_has_a_secure_cookie(started: Gateway, authority: Authority) -> None:
    response, _ = ask(started, authority, "POST", "/login", FORM, "username=guest&password=guest")
    cookie = response.headers["Set-Cookie"]
    assert "Secure" in cookie.split("; ")
    response, user = ask(started, authority, "GET", "/whoami", {"Cookie": cookie.partition(";")[0]})
    assert (response.status, user["name"]) == (200, "guest")


def test_a_request_without_tls_does_not_disturb_others(started: Gateway, authority: Authority) -> None:
    with socket.create_connection(started.addresses["management_tls"], timeout=10) as plain:
        plain.sendall(b"GET /api/whoami HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert not plain.recv(100).startswith(b"HTTP")
    assert ask(started, authority, "GET", "/whoami", LOGIN)[0].status == 200
    assert "Traceback" not in started.log


def test_a_reload_takes_a_new_certificate(started: Gateway, authority: Authority, tmp_path: Path) -> None:
    def served() -> str:
        return ssl.get_server_certificate(started.addresses["management_tls"], timeout=10)

    before = served()
    for new, old in zip(authority.sign("renewed"), ("broker.pem", "broker.key"), strict=True):
        (tmp_path / old).write_bytes(new.read_bytes())
    started.child.send_signal(signal.SIGHUP)
    started.log_has("info reloaded")
    assert served() != before
    assert ask(started, authority, "GET", "/whoami", LOGIN)[0].status == 200
