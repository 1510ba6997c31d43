"""Verbs for delayed and kept messages, with paging, for windows of deduplication, and for the node."""

from typing import Any

import pytest

from tests.cli.ctl.fake_api import FakeApi
from tests.cli.ctl.running import Ctl

WAITING = {"position": 7, "due_at": "soon", "exchange": "", "routing_key": "q", "payload_bytes": 3, "payload": "abc"}
MEMORY = {"other_proc": 750_000_000, "mapped_files": 250_000_000, "strategy": "rss", "total": {"rss": 10**9}}


def page(*items: Any, pages: int = 1) -> dict[str, Any]:
    return {"items": list(items), "page_count": pages}


def test_delayed_messages_are_listed(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET queues/%2F/q/delayed", page(WAITING))
    assert ctl("list_delayed_messages", "q", "-q").out.splitlines()[1] == "7\tsoon\t\tq\t3"
    assert ctl("list_delayed_messages", "q", "payload,position", "-s").out == "abc\t7\n"
    assert ctl("list_delayed_messages", "q", "position", "--formatter", "json").out == '[\n{"position":7}\n]\n'


def test_delayed_messages_of_an_exchange_in_a_virtual_host_are_listed(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET exchanges/v1/later/delayed", page())
    result = ctl("-p", "v1", "list_delayed_messages", "later", "--exchange")
    assert result.out.splitlines()[0] == "Listing delayed messages of exchange 'later' in vhost v1 ..."


def test_pages_are_requested_until_the_limit_is_reached(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET queues/%2F/q/delayed", page(*[WAITING] * 500, pages=9))
    assert len(ctl("list_delayed_messages", "q", "position", "-s", "--limit", "600").out.splitlines()) == 600
    targets = [received.target.partition("?")[2] for received in api.received]
    assert targets == ["page=1&page_size=500", "page=2&page_size=500"]


def test_kept_messages_are_listed(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET exchanges/v1/prices/kept", page({"key": "EUR", "routing_key": "EUR", "payload": "1.1"}))
    result = ctl("-p", "v1", "list_kept_messages", "prices", "key,payload")
    assert result.out == "Listing kept messages of exchange 'prices' in vhost v1 ...\nkey\tpayload\nEUR\t1.1\n"


def test_windows_of_deduplication_are_listed(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET deduplication/v1", [{"kind": "queue", "name": "orders", "keys": 7, "size": 10}])
    assert ctl("-p", "v1", "list_deduplication_windows", "name", "keys", "-s").out == "orders\t7\n"


REFUSED = [
    (["list_kept_messages", "nope"], 69, "exchange 'nope' does not exist in vhost '/'"),
    (["drop_kept_messages", "prices"], 64, "give either keys or --all"),
    (["drop_kept_messages", "prices", "x", "--all"], 64, "give either keys or --all"),
    (["drop_kept_messages", "prices", "x"], 69, "a kept message with key 'x' of exchange 'prices' does not exist"),
    (["clear_deduplication_window", "q"], 69, "a deduplication window of queue 'q' does not exist in vhost '/'"),
    (["list_delayed_messages", "q", "nope"], 64, "Info key(s) nope are not supported"),
    (["list_delayed_messages", "nope"], 69, "queue 'nope' does not exist in vhost '/'"),
    (["list_delayed_messages", "x", "-p", "nope"], 65, "Virtual host 'nope' does not exist"),
    (["cancel_delayed_messages", "q"], 64, "give either positions or --all"),
    (["cancel_delayed_messages", "q", "1", "--all"], 64, "give either positions or --all"),
    (["cancel_delayed_messages", "q", "5"], 69, "a delayed message at 5 of queue 'q' does not exist in vhost '/'"),
    (["enable_feature_flag", "nope"], 69, "feature flag 'nope' does not exist in vhost '/'"),
]


@pytest.mark.parametrize(("arguments", "code", "error"), REFUSED)
def test_an_error_exits_with_its_code(ctl: Ctl, arguments: list[str], code: int, error: str) -> None:
    result = ctl(*arguments)
    assert (result.code, result.err.startswith(f"Error: {error}")) == (code, True), result.err


def test_memory_is_broken_down(ctl: Ctl, api: FakeApi) -> None:
    api.answer("GET nodes/gateway%40here/memory", {"memory": MEMORY})
    assert ctl("memory_breakdown", "-q").out == "other_proc: 0.75 gb (75.0%)\nmapped_files: 0.25 gb (25.0%)\n"
    csv = ctl("memory_breakdown", "--formatter", "csv").out.splitlines()
    assert csv[0].replace('"', "") == "name,bytes,percentage"


def test_logins_are_listed(ctl: Ctl, api: FakeApi) -> None:
    counted = {"protocol": "http", "auth_attempts": 3, "auth_attempts_failed": 1, "auth_attempts_succeeded": 2}
    api.answer("GET auth/attempts/gateway%40here", [counted])
    assert ctl("list_node_auth_attempt_stats", "-s").out == "http\t3\t1\t2\n"


@pytest.mark.parametrize(("vhost", "path"), [((), "auth/cache"), (("orders",), "auth/cache/orders")])
def test_kept_answers_about_access_are_dropped(ctl: Ctl, api: FakeApi, vhost: tuple[str, ...], path: str) -> None:
    api.answer(f"DELETE {path}", None)
    assert ctl("clear_auth_backend_cache", *vhost, "-q").code == 0
    assert [request for request, _ in api.changes()] == [f"DELETE {path}"]


def test_an_expiring_certificate_fails_the_check(ctl: Ctl, api: FakeApi) -> None:
    path = "GET health/checks/certificate-expiration/5/days"
    api.answer(path, {"status": "ok"})
    arguments = ("check_certificate_expiration", "--within", "5", "--unit", "days", "-q")
    assert ctl(*arguments).out == "No certificates are expiring within 5 days.\n"
    api.answer(path, {"status": "failed", "reason": "Certificates expiring"}, status=503)
    assert (ctl(*arguments).code, ctl(*arguments).err) == (69, "Error: Certificates expiring\n")
