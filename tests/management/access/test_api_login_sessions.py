"""Logins of the web UI: sessions and their cookies."""

from collections.abc import Mapping
from typing import Final

import pytest

from gateway.access import Principal
from gateway.kernel.broker.directory import Directory
from gateway.management.http.login_sessions import MAX_SESSIONS_OF_USER, LoginSessions
from gateway.patterns import compile_pattern
from gateway.testing.clock import FakeClock
from tests.management.client_connection import LOGIN, ClientConnection
from tests.management.console import SESSION_S, Answer, Console
from tests.protocols.amqp.dialogue import Gateway

FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
SAME_PAGE: Final = {"Origin": "http://here"}


def begin(
    console: Console, user: str = "guest", password: str = "", headers: Mapping[str, str] | None = None
) -> Answer:
    form = f"username={user}&password={password or user}".encode()
    return console.ask("POST", "/login", user=None, content=form, headers=FORM | dict(headers or {}))


def cookie_of(answer: Answer) -> dict[str, str]:
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}


def status_of(console: Console, cookie: Mapping[str, str], path: str = "/whoami", **options: str) -> int:
    return console.ask("GET", path, user=None, headers=cookie, **options).status


def test_a_login_sets_a_cookie_that_authenticates(console: Console) -> None:
    answer = begin(console)
    assert answer.result == (200, "ok")
    assert console.get("/whoami", user=None, headers=cookie_of(answer))["name"] == "guest"


def test_scripts_and_other_sites_get_no_cookie(console: Console) -> None:
    attributes = begin(console).headers["set-cookie"].split("; ")[1:]
    kept = {attribute for attribute in attributes if not attribute.startswith("Expires=")}
    assert kept == {"HttpOnly", f"Max-Age={SESSION_S}", "Path=/", "SameSite=Strict"}


def test_with_tls_the_cookie_is_secure_and_bound_to_the_host(console: Console) -> None:
    cookie = begin(console, headers={"X-Forwarded-Proto": "https"}).headers["set-cookie"]
    assert cookie.startswith("__Host-gateway_session=")
    assert "Secure" in cookie.split("; ")


def test_a_cookie_of_plain_http_is_not_valid_with_tls(console: Console) -> None:
    cookie = cookie_of(begin(console)) | {"X-Forwarded-Proto": "https"}
    assert status_of(console, cookie) == 401


@pytest.mark.parametrize("password", ["wrong", ""])
def test_a_failed_login_begins_no_session(console: Console, password: str) -> None:
    answer = begin(console, "guest", password or "%20")
    assert answer.result == (401, {"error": "not_authorized", "reason": "Login failed"})
    assert "set-cookie" not in answer.headers


def test_a_user_without_a_tag_gets_no_session(console: Console) -> None:
    console.add_user("plain")
    answer = begin(console, "plain")
    assert answer.status == 401
    assert "set-cookie" not in answer.headers


def test_a_logout_ends_the_session(console: Console) -> None:
    cookie = cookie_of(begin(console))
    answer = console.ask("DELETE", "/login", user=None, headers=cookie | SAME_PAGE)
    assert answer.status == 204
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert status_of(console, cookie) == 401


def test_a_session_ends_after_its_time() -> None:
    clock = FakeClock()
    console = Console(Gateway(clock=clock))
    cookie = cookie_of(begin(console))
    clock.advance(SESSION_S - 1)
    assert status_of(console, cookie) == 200
    clock.advance(1)
    assert status_of(console, cookie) == 401


@pytest.mark.parametrize(
    "change", [{"tags": "administrator"}, {"password": "other", "tags": "monitoring"}, None], ids=str
)
def test_a_changed_or_deleted_user_loses_its_sessions(console: Console, change: dict[str, str] | None) -> None:
    console.add_user("maria", "monitoring")
    cookie = cookie_of(begin(console, "maria"))
    assert status_of(console, cookie) == 200
    if change is None:
        console.delete("/users/maria")
    else:
        console.put("/users/maria", change)
    assert status_of(console, cookie) == 401


def test_changed_permissions_apply_to_open_sessions(console: Console) -> None:
    console.add_user("anna", "management")
    cookie = cookie_of(begin(console, "anna"))
    assert status_of(console, cookie, "/queues/%2F") == 200
    console.delete("/permissions/%2F/anna")
    assert status_of(console, cookie, "/queues/%2F") == 401


def test_a_session_of_this_machine_is_not_valid_elsewhere(console: Console) -> None:
    cookie = cookie_of(begin(console))
    assert status_of(console, cookie, peer_host="192.0.2.9") == 401
    assert status_of(console, cookie) == 200


def test_an_unknown_cookie_is_refused_and_removed(console: Console) -> None:
    answer = console.ask("GET", "/whoami", user=None, headers={"Cookie": "other=1; gateway_session=guessed"})
    assert answer.result == (401, {"error": "not_authorized", "reason": "the session has ended, log in again"})
    assert "Max-Age=0" in answer.headers["set-cookie"]


def test_cookies_of_other_servers_of_the_host_are_ignored(console: Console) -> None:
    assert console.get("/whoami", headers={"Cookie": 'a="x; y"; =; gateway_sessions=1'})["name"] == "guest"


def test_credentials_come_before_a_cookie(console: Console) -> None:
    console.add_user("anna", "management")
    cookie = cookie_of(begin(console))
    assert console.get("/whoami", user="anna", headers=cookie)["name"] == "anna"


# Foreign pages


def test_a_change_with_a_cookie_needs_the_origin(console: Console) -> None:
    cookie = cookie_of(begin(console))
    answer = console.ask("PUT", "/queues/%2F/q", {}, user=None, headers=cookie)
    assert answer.result[0] == 403
    assert answer.json["error"] == "foreign_origin"
    assert console.ask("PUT", "/queues/%2F/q", {}, user=None, headers=cookie | SAME_PAGE).status == 201


@pytest.mark.parametrize("origin", ["http://evil.example", "http://here:8080", "null"])
def test_a_foreign_page_cannot_use_the_cookie(console: Console, origin: str) -> None:
    cookie = cookie_of(begin(console))
    for method, path in (("PUT", "/queues/%2F/q"), ("DELETE", "/login"), ("GET", "/users")):
        assert console.ask(method, path, user=None, headers=cookie | {"Origin": origin}).status == 403
    assert status_of(console, cookie) == 200


def test_a_foreign_page_cannot_log_a_browser_in(console: Console) -> None:
    assert begin(console, headers={"Origin": "http://evil.example"}).status == 403


# Challenges


@pytest.mark.parametrize(
    ("header", "is_challenged"),
    [("Accept: */*", True), ("Sec-Fetch-Mode: navigate", True), ("Sec-Fetch-Mode: cors", False),
     ("X-Requested-With: XMLHttpRequest", False)],
)  # fmt: skip
def test_a_script_of_a_page_gets_no_challenge(console: Console, header: str, is_challenged: bool) -> None:
    for login in (LOGIN.replace("Basic ", "Basic x"), "Accept-Language: en"):
        client = ClientConnection(console)
        client.ask("GET /api/whoami", login, header)
        client.wait()
        assert client.answer.status in (400, 401)
        assert ("www-authenticate" in client.answer.headers) is (is_challenged and client.answer.status == 401)


# Bounds


def test_the_oldest_session_of_a_user_makes_room() -> None:
    sessions = LoginSessions(Directory(lambda change: None, compile_pattern), FakeClock(), 60)
    other = sessions.begin(Principal("other"), is_local=False)
    tokens = [sessions.begin(Principal("one"), is_local=False) for _ in range(MAX_SESSIONS_OF_USER + 1)]
    assert len(sessions) == MAX_SESSIONS_OF_USER + 1
    alive = [token for token in (other, *tokens) if sessions.principal_of(token, is_local=False)]
    assert alive == [other, *tokens[1:]]


def test_a_session_ends_with_its_token() -> None:
    clock = FakeClock()
    sessions = LoginSessions(Directory(lambda change: None, compile_pattern), clock, 3600)
    token = sessions.begin(Principal("one", expires_at_s=clock.wall_ms() / 1000 + 10), is_local=False)
    assert sessions.principal_of(token, is_local=False) == Principal("one")
    clock.advance(11)
    assert sessions.principal_of(token, is_local=False) is None
