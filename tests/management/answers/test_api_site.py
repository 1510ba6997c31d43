"""All requests: authentication, paths, errors, and the time of responses."""

import json

import pytest

from tests.management.console import BODY_LIMIT, Console, parsed

NOT_FOUND = {"error": "Object Not Found", "reason": "Not Found"}


def test_a_request_without_credentials_is_challenged(console: Console) -> None:
    answer = console.ask("GET", "/overview", user=None)
    assert (answer.status, answer.content) == (401, b"")
    assert answer.headers["www-authenticate"].startswith("Basic realm=")


def test_wrong_credentials_are_challenged_again(console: Console) -> None:
    answer = console.ask("GET", "/overview", user="absent")
    assert answer.result == (401, {"error": "not_authorized", "reason": "Login failed"})
    assert "www-authenticate" in answer.headers


@pytest.mark.parametrize(("header", "status"), [("Bearer x", 401), ("Basic !!", 400), ("Basic /w==", 400)])
def test_a_malformed_authorization_is_refused(console: Console, header: str, status: int) -> None:
    answer = console.ask("GET", "/whoami", user=None, headers={"Authorization": header})
    assert answer.status == status


def test_a_user_without_a_tag_is_refused(console: Console) -> None:
    console.add_user("plain")
    assert console.ask("GET", "/whoami", user="plain").result == (
        401,
        {"error": "not_authorised", "reason": "Not management user"},
    )


def test_guest_may_connect_only_from_this_machine(console: Console) -> None:
    assert console.ask("GET", "/whoami", peer_host="192.0.2.1").status == 401


@pytest.mark.parametrize("path", ["/nowhere", "/queues/%2F/none", "/queues/none", "/vhosts/none", "/connections/none"])
def test_an_unknown_path_is_not_found(console: Console, path: str) -> None:
    assert console.ask("GET", path).result == (404, NOT_FOUND)


ALLOWED = [
    ("/overview", "HEAD, GET, OPTIONS"),
    ("/queues/%2F/q", "HEAD, GET, PUT, DELETE, OPTIONS"),
    ("/queues/%2F/q/contents", "DELETE, OPTIONS"),
]


@pytest.mark.parametrize(("path", "allowed"), ALLOWED)
def test_an_unsupported_method_is_answered_with_the_allowed_ones(console: Console, path: str, allowed: str) -> None:
    answer = console.ask("PATCH", path, {})
    assert (answer.status, answer.headers["allow"]) == (405, allowed)
    answer = console.ask("OPTIONS", path)
    assert (answer.status, answer.headers["allow"]) == (200, allowed)


def test_head_returns_the_headers_of_get(console: Console) -> None:
    got, head = console.ask("GET", "/whoami"), console.ask("HEAD", "/whoami")
    assert head.content == b""
    assert head.headers["content-length"] == got.headers["content-length"] == str(len(got.content))


def test_a_trailing_slash_is_ignored(console: Console) -> None:
    assert console.get("/whoami/") == console.get("/whoami")


@pytest.mark.parametrize("content", [b"{", b"[]", b"3", b'"x"', b"\xff"])
def test_a_body_that_is_no_json_object_is_refused(console: Console, content: bytes) -> None:
    answer = console.ask("PUT", "/queues/%2F/q", content=content)
    assert answer.result == (400, {"error": "bad_request", "reason": "not_json"})


def test_names_may_contain_any_characters(console: Console) -> None:
    path = "/queues/%2F/a%2Fb%20%25%20%C3%A9"
    console.put(path, {})
    assert console.get(path)["name"] == "a/b % é"


def test_a_path_that_is_not_utf_8_is_refused(console: Console) -> None:
    assert console.ask("GET", "/queues/%2F/%FF").status == 400


def test_a_body_above_the_limit_is_not_received(console: Console) -> None:
    answer = console.ask("PUT", "/queues/%2F/q", content=b" " * (BODY_LIMIT + 1))
    assert answer.status == 413
    assert answer.headers["connection"] == "close"


def test_a_chunked_body_above_the_limit_is_refused(console: Console) -> None:
    chunk = b"1000\r\n" + b" " * 0x1000 + b"\r\n"
    answer = console.ask(
        "PUT", "/queues/%2F/q", content=chunk * 17 + b"0\r\n\r\n", headers={"Transfer-Encoding": "chunked"}
    )
    assert answer.status == 413


def test_a_change_is_answered_when_it_is_durable(console: Console) -> None:
    transport = console.send("PUT", "/queues/%2F/q", {"durable": True})
    console.gateway.end_turn()
    assert transport.value() == b""
    console.gateway.settle()
    assert parsed(transport.value()).status == 201


def test_a_disconnect_before_the_response_is_harmless(console: Console) -> None:
    transport = console.send("PUT", "/queues/%2F/q", {"durable": True})
    transport.loseConnection()
    console.gateway.settle()
    assert console.get("/queues/%2F/q")["durable"] is True


def test_an_internal_error_is_answered_with_500(console: Console) -> None:
    def broken() -> object:
        raise RuntimeError("boom")

    console.gateway.broker.vhost_by_name = None  # type: ignore[assignment]  # provoke an internal error
    answer = console.ask("GET", "/vhosts")
    assert answer.result == (
        500,
        {"error": "internal_error", "reason": "internal error, see the log of the gateway"},
    )


def test_long_listings_are_generated_in_slices(console: Console) -> None:
    for number in range(300):
        console.gateway.vhost.declare_queue(f"q{number:03}")
    transport = console.send("GET", "/queues")
    assert transport.value() == b""
    for _ in range(100):
        console.clock.advance(0.01)
    assert [queue["name"] for queue in parsed(transport.value()).json] == [f"q{number:03}" for number in range(300)]


def test_types_without_a_json_equivalent_are_converted(console: Console) -> None:
    console.put("/queues/%2F/q", {"arguments": {"x-custom": "é"}})
    assert json.loads(console.ask("GET", "/queues/%2F/q").content)["arguments"] == {"x-custom": "é"}
