"""Logins: tokens, throttling, TLS, the end of a session, and pages of other servers."""

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import jwt
import pytest

from tests.management_client import get, put, request
from tests.running import HOST, Gateway
from tests.ui.browser import Browser

SECRET: Final = "a secret of the tests of the web UI!"


def enter(browser: Browser, user: str, password: str) -> None:
    browser.fill("User name", user)
    browser.fill("Password", password)
    browser.press("Log in")


def test_a_token_is_accepted_as_password(window: Browser, shop: Gateway) -> None:
    settings = {"resource_server_id": "mq", "algorithms": ["HS256"], "hmac_keys": {"one": SECRET}}
    put(shop, "plugins/%2F/auth-oauth2", settings)
    scopes = "mq.tag:management mq.read:%2F/orders*"
    token = jwt.encode({"sub": "tessa", "aud": "mq", "scope": scopes}, SECRET, "HS256", {"kid": "one"})
    window.log_out()
    enter(window, "any", token)
    window.see("tessa")
    window.open("/queues/%2F/orders.new")
    window.button("Purge")
    assert "Delete" not in window.texts(".page-head button")
    request(shop, "DELETE", "plugins/%2F/auth-oauth2")
    window.log_out()


def test_too_many_failed_logins_are_explained(window: Browser, shop: Gateway) -> None:
    window.log_out()
    request(shop, "PUT", "users/brute", {"password": "brute", "tags": "management"})

    def is_throttled() -> bool:
        enter(window, "brute", "wrong")
        window.wait(lambda: window.button("Log in").is_enabled(), "the login does not end")
        return "too many failed logins, retry after" in window.text

    window.wait(is_throttled, "logins are not throttled")
    request(shop, "DELETE", "users/brute")
    window.forget()


def is_valid(shop: Gateway, cookie: str) -> bool:
    """Return whether the broker accepts a session's cookie."""
    host, port = shop.addresses["management"]
    asked = urllib.request.Request(f"http://{host}:{port}/api/whoami", headers={"Cookie": f"gateway_session={cookie}"})
    try:
        urllib.request.urlopen(asked, timeout=10).close()
    except urllib.error.HTTPError:
        return False
    return True


def test_a_logout_ends_the_session_at_the_broker(browser: Browser, shop: Gateway) -> None:
    cookie = browser.driver.get_cookie("gateway_session")
    assert cookie["httpOnly"] is True
    assert cookie["sameSite"] == "Strict"
    assert is_valid(shop, cookie["value"])
    browser.open("/")
    browser.press("Log out")
    browser.see("You are logged out.")
    assert not is_valid(shop, cookie["value"])
    assert browser.driver.get_cookie("gateway_session") is None
    browser.user = ""


def test_the_page_works_over_tls_with_a_secure_cookie(window: Browser, shop: Gateway) -> None:
    host, port = shop.addresses["management_tls"]
    secure = Browser(window.driver, f"https://{host}:{port}")
    secure.log_in("guest")
    cookie = secure.driver.get_cookie("__Host-gateway_session")
    assert cookie["secure"] is True
    secure.open("/queues")
    secure.see("orders.audit")
    secure.open("/publish?tab=MQTT")
    secure.see("wss://")
    secure.fill("Password", "guest")
    secure.press("Connect")
    secure.see("connected")
    secure.press("Log out")
    secure.see("You are logged out.")
    assert secure.driver.get_cookie("__Host-gateway_session") is None
    secure.forget()
    window.user = ""


class ForeignPage(BaseHTTPRequestHandler):
    """Answers with an empty page, from another port of the same host: a browser sends it the same cookies."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>foreign</title><form method=post enctype=text/plain></form>")

    def log_message(self, *_: Any) -> None:
        """Write nothing."""


@pytest.fixture
def foreign() -> Iterator[str]:
    """The address of a page of another server."""
    with ThreadingHTTPServer((HOST, 0), ForeignPage) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://{HOST}:{server.server_port}/"
        server.shutdown()
        thread.join()


#: Tries to read and to change something with the cookie of the user who visits the page; returns the outcomes.
_ATTACK: Final = """
const [api, done] = arguments;
const queue = JSON.stringify({queues: [{vhost: "/", name: "stolen", durable: true, arguments: {}}]});
const with_cookie = {credentials: "include"};
const tries = [
  fetch(`${api}/whoami`, with_cookie),
  fetch(`${api}/definitions`, {...with_cookie, method: "POST", mode: "no-cors", body: queue}),
  fetch(`${api}/queues/%2F/stolen`, {...with_cookie, method: "PUT", body: "{}"}),
  fetch(`${api}/queues/%2F/backlog/contents`, {...with_cookie, method: "DELETE"}),
];
Promise.allSettled(tries).then((ended) => done(ended.map(({status}) => status)));
"""

_SUBMIT: Final = """
const [api, body] = arguments;
const [form] = document.forms;
const field = document.createElement("input");
[form.action, field.name, field.value] = [`${api}/definitions`, body.slice(0, -2), body.slice(-1)];
form.append(field);
form.submit();
"""


def test_a_foreign_page_cannot_use_the_session(browser: Browser, shop: Gateway, foreign: str) -> None:
    waiting = get(shop, "queues/%2F/backlog")["messages"]
    browser.driver.get(foreign)
    assert browser.driver.get_cookie("gateway_session") is not None
    api = f"{browser.address}/api"
    assert browser.driver.execute_async_script(_ATTACK, api) == ["rejected"] * 4
    definitions = '{"queues": [{"vhost": "/", "name": "stolen", "durable": true, "arguments": {}}], "x": "=1"}'
    browser.driver.execute_script(_SUBMIT, api, definitions)
    browser.wait(lambda: browser.driver.current_url.startswith(api), "the form is not sent")
    assert "stolen" not in [queue["name"] for queue in get(shop, "queues/%2F")]
    assert get(shop, "queues/%2F/backlog")["messages"] == waiting
    browser.load("/")
    browser.see("Overview")
    assert any("403" in complaint for complaint in browser.complaints())
