"""RabbitMQ's resources for clusters, answered by a single node; statistics of logins."""

from typing import Any

import pytest

from gateway_amqp.tuning import PROTOCOL_HEADER
from tests.management.console import Console
from tests.protocols.amqp.dialogue import Peer
from tests.protocols.amqp.frames import start_ok

ATTEMPTS = "/auth/attempts/gateway%40here"
LEADERS = "/health/checks/quorum-queues-without-elected-leaders"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}

ANSWERS: list[tuple[str, str, Any, tuple[int, Any]]] = [
    ("POST", "/rebalance/queues", {}, (204, None)),
    ("POST", "/queues/%2F/q/actions", {"action": "sync"}, (204, None)),
    ("POST", "/queues/%2F/q/actions", {"action": "cancel_sync"}, (204, None)),
    ("POST", "/queues/%2F/q/actions", {"action": "x"}, (400, {"error": "bad_request", "reason": ["unknown", "x"]})),
    ("POST", "/queues/%2F/q/actions", {}, (400, {"error": "bad_request", "reason": "[{key_missing,action}]"})),
    ("POST", "/vhosts/%2F/start/gateway%40here", None, (204, None)),
    ("POST", "/vhosts/%2F/start/nope%40x", None,
     (400, {"error": "bad_request", "reason": "Request to node nope@x failed with nodedown"})),
    ("DELETE", "/reset", None, (204, None)),
    ("GET", f"{ATTEMPTS}/source", None, (200, [])),
    ("DELETE", f"{ATTEMPTS}/source", None, (204, None)),
    ("GET", "/healthchecks/node/gateway%40here", None, (200, {"status": "ok"})),
    ("GET", "/health/checks/reached-target-cluster-size", None, (200, {"status": "ok"})),
    ("GET", "/health/checks/metadata-store/initialized/with-data", None, (200, {"status": "ok"})),
    ("GET", f"{LEADERS}/vhost/%2F/pattern/.*", None, (200, {"status": "ok"})),
    ("GET", f"{LEADERS}/all-vhosts/pattern/.*", None, (200, {"status": "ok"})),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "fields", "expected"), ANSWERS)
def test_a_single_node_answers(
    console: Console, method: str, path: str, fields: object, expected: tuple[int, Any]
) -> None:
    console.put("/queues/%2F/q", {})
    assert console.ask(method, path, fields).result == expected


ABSENT = [
    ("POST", "/queues/%2F/nope/actions"),
    ("POST", "/vhosts/nope/start/gateway%40here"),
    ("GET", "/auth/attempts/elsewhere"),
    ("GET", "/healthchecks/node/elsewhere"),
    ("GET", "/nodes/elsewhere/memory/relative"),
    ("GET", f"{LEADERS}/vhost/nope/pattern/.*"),
]


@pytest.mark.parametrize(("method", "path"), ABSENT)
def test_an_unknown_entity_is_not_found(console: Console, method: str, path: str) -> None:
    assert console.ask(method, path, {"action": "sync"} if method == "POST" else None).status == 404


@pytest.mark.parametrize(("method", "path", "fields", "expected"), [row for row in ANSWERS if "health" not in row[1]])
def test_cluster_resources_are_for_administrators(
    console: Console, method: str, path: str, fields: object, expected: tuple[int, Any]
) -> None:
    console.add_user("watcher", "monitoring")
    assert console.ask(method, path, fields, user="watcher").status == 401


def test_logins_are_counted(console: Console) -> None:
    console.gateway.connect()
    Peer(console.gateway).send(PROTOCOL_HEADER).send(start_ok("\0guest\0wrong"))
    console.ask("GET", "/whoami")
    console.ask("GET", "/whoami", user="absent")
    http, amqp = "http", "amqp091"
    counted = {each.pop("protocol"): each for each in console.get(ATTEMPTS)}
    assert counted[amqp] == {"auth_attempts": 2, "auth_attempts_failed": 1, "auth_attempts_succeeded": 1}
    assert counted[http] == {"auth_attempts": 3, "auth_attempts_failed": 1, "auth_attempts_succeeded": 2}
    console.delete(ATTEMPTS)
    assert [each["protocol"] for each in console.get(ATTEMPTS)] == [http]


LOGINS = [
    (b"username=guest&password=guest", (200, "ok")),
    (b"username=guest&password=wrong", (401, {"error": "not_authorized", "reason": "Login failed"})),
    (b"username=guest", (401, {"error": "not_authorized", "reason": "Login failed"})),
    (b"username=plain&password=plain", (401, {"error": "not_authorised", "reason": "Not management user"})),
]


@pytest.mark.parametrize(("form", "expected"), LOGINS)
def test_a_login_by_form_is_answered(console: Console, form: bytes, expected: tuple[int, Any]) -> None:
    console.add_user("plain")
    assert console.ask("POST", "/login", user=None, content=form, headers=FORM).result == expected


def test_guest_logs_in_only_from_this_machine(console: Console) -> None:
    form = b"username=guest&password=guest"
    assert console.ask("POST", "/login", user=None, content=form, headers=FORM, peer_host="192.0.2.7").status == 401


def test_memory_is_shown_in_percent(console: Console) -> None:
    memory = console.get("/nodes/gateway%40here/memory/relative")["memory"]
    assert memory["total"] == 100
    assert all(0 <= share <= 101 for share in memory.values())


def test_all_exchange_types_are_listed(console: Console) -> None:
    for types in (console.get("/overview")["exchange_types"], console.get("/nodes")[0]["exchange_types"]):
        names = {each["name"] for each in types}
        assert {"direct", "topic", "x-consistent-hash", "x-jms-topic", "x-local-random", "x-modulus-hash"} <= names
        assert {
            "x-random",
            "x-rtopic",
            "x-lvc",
            "x-recent-history",
            "x-delayed-message",
            "x-message-deduplication",
        } <= names
    needed = {
        "x-delayed-message": {"x-delayed-type": "direct"},
        "x-message-deduplication": {"x-cache-size": 10},
        "x-modulus-hash": {},
    }
    for name in names:
        console.put(f"/exchanges/%2F/of-{name}", {"type": name, "arguments": needed.get(name, {})})
