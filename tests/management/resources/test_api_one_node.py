"""RabbitMQ's resources for clusters, answered by a single node; statistics of logins."""

from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest

from gateway.config.limits import LimitSettings
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
    ("DELETE", f"{ATTEMPTS}/source", None, (204, None)),
    ("POST", "/queues/quorum/replicas/on/gateway%40here/grow",
     {"vhost_pattern": ".*", "queue_pattern": ".*", "strategy": "all"}, (204, None)),
    ("DELETE", "/queues/quorum/replicas/on/gateway%40here/shrink", None, (204, None)),
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
    ("POST", "/queues/quorum/replicas/on/elsewhere/grow"),
    ("POST", "/queues/quorum/%2F/nope/replicas/add"),
    ("GET", "/queues/quorum/%2F/nope/status"),
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


# Quorum queues

NODE = {"node": "gateway@here"}
REPLICAS = [
    ("POST", "q/replicas/add", NODE, "already_a_member"),
    ("POST", "q/replicas/add", {"node": "b@x"}, "node b@x is not running: gateway@here is the only node"),
    ("DELETE", "q/replicas/delete", NODE, "last_node"),
    ("DELETE", "q/replicas/delete", {"node": "b@x"}, "not_a_member"),
    ("POST", "c/replicas/add", NODE, "classic_queue_not_supported"),
    ("GET", "c/status", None, "classic_queue_not_supported"),
]


@pytest.mark.parametrize(("method", "path", "fields", "reason"), REPLICAS)
def test_a_quorum_queue_keeps_its_only_replica(
    console: Console, method: str, path: str, fields: object, reason: str
) -> None:
    _declare_queues(console)
    answer = console.ask(method, f"/queues/quorum/%2F/{path}", fields)
    assert answer.result == (503, {"error": "service_unavailable", "reason": reason})


def test_a_quorum_queue_shows_its_node_as_leader(console: Console) -> None:
    _declare_queues(console)
    (replica,) = console.get("/queues/quorum/%2F/q/status")
    assert (replica["Node Name"], replica["Raft State"]) == ("gateway@here", "leader")
    queue = console.get("/queues/%2F/q")
    assert (queue["leader"], queue["members"], queue["online"]) == ("gateway@here", ["gateway@here"], ["gateway@here"])
    assert console.ask("DELETE", "/queues/quorum/replicas/on/gateway%40here/shrink").json["reason"] == "last_node"


def _declare_queues(console: Console) -> None:
    console.put("/queues/%2F/q", {"durable": True, "arguments": {"x-queue-type": "quorum"}})
    console.put("/queues/%2F/c", {"durable": True})


# Deprecated features and limits


def test_deprecated_features_are_listed_and_those_in_use(console: Console) -> None:
    states = {each["name"]: each["state"] for each in console.get("/deprecated-features")}
    assert states == {"transient_nonexcl_queues": "permitted", "global_qos": "permitted"}
    assert console.get("/deprecated-features/used") == []
    console.put("/queues/%2F/q", {"durable": False})
    assert [each["name"] for each in console.get("/deprecated-features/used")] == ["transient_nonexcl_queues"]


def test_the_limits_of_the_node_have_the_names_of_their_settings(console: Console) -> None:
    broker = console.gateway.broker
    broker.queue_rules = replace(broker.queue_rules, max_queues=7)
    limits = console.get("/node-limits")
    assert limits["queues_per_vhost"] == 7
    assert set(limits) == set(LimitSettings.model_fields)


def test_sessions_are_only_of_amqp_1_0(console: Console) -> None:
    console.gateway.connect()
    (connection,) = console.get("/connections")
    path = f"/connections/{quote(connection['name'], safe='')}/sessions"
    assert console.ask("GET", path).result == (
        400,
        {"error": "bad_request", "reason": "connection does not use AMQP 1.0"},
    )
    assert console.ask("GET", "/connections/none/sessions").status == 404


def test_the_overview_is_reduced_to_columns(console: Console) -> None:
    assert console.get("/overview?columns=node,object_totals.queues") == {
        "node": "gateway@here",
        "object_totals": {"queues": 0},
    }
