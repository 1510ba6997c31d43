"""The audit record over HTTP: what requests leave in it, and how it is read."""

from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from pamqp import commands

from gateway.management.auditing.actions import AUDITED, NOT_AUDITED
from gateway.management.auditing.masking import masked
from gateway.management.resources.table import ROUTES
from tests.management.console import Console

Entry = dict[str, Any]


def entries(console: Console, query: str = "") -> list[Entry]:
    """The entries that match, the newest first."""
    found: list[Entry] = console.get(f"/audit{query}")["items"]
    return found


def shown(entry: Entry) -> tuple[str, str, str]:
    return entry["action"], entry["vhost"], entry["subject"]


def test_a_change_has_its_user_address_surface_and_states(console: Console) -> None:
    console.put("/queues/%2F/q", {"durable": True, "arguments": {"x-max-length": 5}})
    (entry,) = entries(console)
    assert shown(entry) == ("queue.created", "/", "q")
    assert (entry["user"], entry["address"], entry["surface"]) == ("guest", "127.0.0.1", "HTTP")
    assert entry["before"] is None
    after = {"durable": True, "auto_delete": False, "exclusive": False, "arguments": {"x-max-length": 5}}
    assert entry["after"] == after
    console.delete("/queues/%2F/q")
    deleted = entries(console)[0]
    assert shown(deleted) == ("queue.deleted", "/", "q")
    assert (deleted["before"], deleted["after"]) == (after, None)


def test_a_user_is_recorded_without_its_password(console: Console) -> None:
    console.put("/users/u", {"password": "first", "tags": "management"})
    console.put("/users/u", {"password": "second", "tags": "management"})
    console.delete("/users/u")
    deleted, changed, created = entries(console)
    assert [entry["action"] for entry in (created, changed, deleted)] == [
        "user.created",
        "user.changed",
        "user.deleted",
    ]
    assert created["after"] == {"tags": ["management"], "password_hash": "***", "limits": {}}
    assert changed["details"] == {"secrets_changed": True}


def test_a_change_of_a_user_whose_client_has_left_is_recorded(console: Console) -> None:
    console.send("PUT", "/users/u", {"password": "first", "tags": ""}).hang_up()
    console.clock.advance(1)
    console.gateway.settle()
    assert [shown(entry) for entry in entries(console)] == [("user.created", "", "u")]


def test_a_request_that_is_refused_or_changes_nothing_is_not_recorded(console: Console) -> None:
    console.put("/queues/%2F/q", {"durable": True})
    assert console.ask("PUT", "/queues/%2F/q", {"durable": False}).status == 400
    assert console.put("/queues/%2F/q", {"durable": True}) == 204
    assert console.ask("DELETE", "/queues/%2F/other").status == 404
    assert len(entries(console)) == 1


def test_secrets_in_the_values_of_parameters_are_replaced(console: Console) -> None:
    console.put("/global-parameters/p", {"value": {"uri": "amqp://u:pw@h/", "token": "t", "list": ["http://a:b@c"]}})
    (entry,) = entries(console)
    assert entry["after"] == {"value": {"uri": "amqp://u:***@h/", "token": "***", "list": ["http://a:***@c"]}}


def test_a_purge_keeps_the_numbers_before_and_after(console: Console) -> None:
    console.put("/queues/%2F/q", {})
    console.gateway.vhost.queue("q")
    console.post("/exchanges/%2F/amq.default/publish", {
        "routing_key": "q", "payload": "x", "payload_encoding": "string", "properties": {},
    })  # fmt: skip
    console.delete("/queues/%2F/q/contents")
    purged = entries(console)[0]
    assert shown(purged) == ("queue.purged", "/", "q")
    assert (purged["before"]["messages_ready"], purged["after"]["messages_ready"]) == (1, 0)


def test_policies_permissions_and_limits_keep_both_states(console: Console) -> None:
    rule = {"pattern": "^a", "definition": {"max-length": 1}, "apply-to": "queues", "priority": 0}
    console.put("/policies/%2F/p", rule)
    console.put("/policies/%2F/p", rule | {"priority": 7})
    console.add_user("u")
    console.put("/permissions/%2F/u", {"configure": "", "write": "", "read": ".*"})
    console.put("/vhost-limits/%2F/max-queues", {"value": 3})
    limits, permission, policy, _ = entries(console)
    assert (policy["action"], policy["before"]["priority"], policy["after"]["priority"]) == ("policy.changed", 0, 7)
    assert permission["before"] == {"configure": ".*", "write": ".*", "read": ".*"}
    assert permission["after"] == {"configure": "", "write": "", "read": ".*"}
    assert (limits["action"], limits["before"], limits["after"]) == ("vhost_limits.changed", {}, {"max-queues": 3})


def test_an_import_is_recorded_with_its_numbers(console: Console) -> None:
    console.post("/definitions", {"vhosts": [{"name": "a"}, {"name": "b"}], "queues": [{"name": "q", "vhost": "a"}]})
    (entry,) = entries(console)
    assert entry["action"] == "definitions.imported"
    assert entry["details"] == {"entries": {"vhosts": 2, "queues": 1}}


def test_a_closed_connection_is_recorded_with_the_reason(console: Console) -> None:
    peer = console.gateway.connect()
    assert console.ask("DELETE", f"/connections/{quote(peer.name)}", headers={"X-Reason": "old"}).status == 204
    (entry,) = entries(console)
    assert (entry["action"], entry["subject"], entry["details"]) == ("connection.closed", peer.name, {"reason": "old"})


def test_a_binding_is_recorded_with_its_request(console: Console) -> None:
    console.put("/queues/%2F/q", {})
    console.post("/bindings/%2F/e/amq.topic/q/q", {"routing_key": "k"})
    (entry, _) = entries(console)
    assert shown(entry) == ("binding.created", "/", "amq.topic q q")
    assert entry["details"] == {"request": {"routing_key": "k"}}


def test_gatewayctl_is_the_surface_cli(console: Console) -> None:
    console.add_user("u", "management")
    agent = {"User-Agent": "gatewayctl/1.0"}
    assert console.ask("PUT", "/queues/%2F/q", {}, user="u", headers=agent, peer_host="10.1.2.3").status == 201
    (entry,) = entries(console)
    assert (entry["surface"], entry["address"]) == ("CLI", "10.1.2.3")


def test_topology_of_amqp_clients_is_recorded_if_the_setting_asks_for_it(console: Console) -> None:
    peer = console.gateway.connect()
    peer.send(commands.Queue.Declare(queue="off"))
    log = console.gateway.broker.audit
    log.rules = replace(log.rules, client_topology=True)
    peer.send(
        commands.Queue.Declare(queue="on"), commands.Queue.Bind(queue="on", exchange="amq.topic", routing_key="k")
    )
    peer.send(commands.Queue.Delete(queue="on"))
    found = [(entry["action"], entry["subject"], entry["surface"], entry["user"]) for entry in entries(console)]
    assert found == [
        ("queue.deleted", "on", "AMQP", "guest"),
        ("binding.deleted", "on", "AMQP", "guest"),
        ("binding.created", "on", "AMQP", "guest"),
        ("queue.created", "on", "AMQP", "guest"),
    ]


# Reading


@pytest.fixture
def filled(console: Console) -> Console:
    """Three entries: two of guest, one of u; the last in the virtual host v."""
    console.add_user("u", "administrator")
    console.put("/queues/%2F/a", {})
    console.ask("PUT", "/queues/%2F/b", {}, user="u", peer_host="10.0.0.2")
    console.put("/vhosts/v", {})
    return console


@pytest.mark.parametrize(
    ("query", "subjects"),
    [
        ("?user=u", ["b"]),
        ("?address=10.0.0.2", ["b"]),
        ("?action=queue.*", ["b", "a"]),
        ("?vhost=v", ["v"]),
        ("?subject=a", ["a"]),
        ("?surface=CLI", []),
        ("?since=2023-11-14T00:00:00Z", ["v", "b", "a"]),
        ("?since=2030-01-01", []),
        ("?until=1600000000000", []),
        ("?page=2&page_size=2", ["a"]),
    ],
)
def test_the_record_is_filtered_and_paged(filled: Console, query: str, subjects: list[str]) -> None:
    assert [entry["subject"] for entry in entries(filled, query)] == subjects


def test_one_entry_is_read_by_its_number(filled: Console) -> None:
    assert filled.get("/audit/2")["subject"] == "b"
    assert filled.ask("GET", "/audit/9").result == (
        404, {"error": "not_found", "reason": "the audit record has no entry 9"},
    )  # fmt: skip


def test_a_time_that_is_none_is_refused_by_name(console: Console) -> None:
    status, answer = console.ask("GET", "/audit?since=yesterday").result
    assert status == 400
    assert answer["reason"].startswith("since: 'yesterday' is neither milliseconds nor a time")


def test_only_administrators_read_the_record(console: Console) -> None:
    console.add_user("m", "monitoring")
    assert console.ask("GET", "/audit", user="m").status == 401


# Coverage


def test_every_route_that_changes_something_has_an_action() -> None:
    changing = {f"{route.method} {route.path}" for route in ROUTES if route.method != "GET"}
    assert changing - set(AUDITED) - NOT_AUDITED == set()
    assert (set(AUDITED) | NOT_AUDITED) - changing == set()


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (
            {"password": "x", "client_secret": "y", "keys": "z"},
            {"password": "***", "client_secret": "***", "keys": "z"},
        ),
        ({"pass": "x", "bypass": "y", "private_key": ""}, {"pass": "***", "bypass": "y", "private_key": ""}),
        ("amqps://a:b%40c@h?password=d&x=1", "amqps://a:***@h?password=***&x=1"),
        (["http://h/a:b@c", 5, None], ["http://h/a:b@c", 5, None]),
    ],
)
def test_secrets_are_replaced(given: object, kept: object) -> None:
    assert masked(given) == kept
