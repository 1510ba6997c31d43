"""Definitions: an export of RabbitMQ is imported, exported and compared; the gateway's own are imported."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.management.console import Console

FIXTURES = Path(__file__).parents[1] / "fixtures"
WHOLE = json.loads((FIXTURES / "rabbitmq-3.10.8.json").read_text(encoding="utf-8"))
SHOP = json.loads((FIXTURES / "rabbitmq-3.10.8-shop.json").read_text(encoding="utf-8"))

NOTHING = {"configure": "", "write": "", "read": ""}

CATEGORIES = (
    "users", "vhosts", "permissions", "topic_permissions", "parameters", "global_parameters", "policies", "queues",
    "exchanges", "bindings",
)  # fmt: skip


def comparable(entries: list[dict[str, Any]], like: list[dict[str, Any]]) -> list[str]:
    """Return entries in a canonical order, with the fields that RabbitMQ writes."""
    names = {name for entry in like for name in entry}
    return sorted(
        json.dumps({name: value for name, value in entry.items() if name in names}, sort_keys=True) for entry in entries
    )


@pytest.mark.parametrize("category", CATEGORIES)
def test_an_imported_rabbitmq_export_is_exported_unchanged(console: Console, category: str) -> None:
    console.post("/definitions", WHOLE)
    console.gateway.broker.directory.put_user(console._administrator())
    exported = console.get("/definitions")
    ours, theirs = exported[category], WHOLE[category]
    if category == "users":  # the console's password differs
        ours, theirs = ([user for user in users if user["name"] != "guest"] for users in (ours, theirs))
    assert comparable(ours, theirs) == comparable(theirs, theirs)


@pytest.mark.parametrize("category", ["parameters", "policies", "queues", "exchanges", "bindings"])
def test_an_export_of_a_virtual_host_can_be_imported_into_another(console: Console, category: str) -> None:
    console.put("/vhosts/branch", {})
    console.post("/definitions/branch", SHOP)
    exported = console.get("/definitions/branch")
    theirs = [{**entry, "vhost": "branch"} if "vhost" in entry else entry for entry in SHOP[category]]
    assert comparable(exported[category], theirs) == comparable(theirs, theirs)


def test_an_export_can_be_imported_by_another_gateway(console: Console) -> None:
    console.post("/definitions", WHOLE)
    console.gateway.broker.directory.put_user(console._administrator())
    exported = console.get("/definitions")
    other = Console()
    other.post("/definitions", exported)
    again = other.get("/definitions")
    assert {name: again[name] for name in CATEGORIES} == {name: exported[name] for name in CATEGORIES}


def test_the_scram_credential_is_exported_with_the_hash(console: Console) -> None:
    console.put("/users/u", {"password": "secret", "tags": ""})
    console.put("/users/v", {"tags": ""})
    other = Console()
    other.post("/definitions", console.get("/definitions"))
    users, others = console.gateway.broker.directory.user_by_name, other.gateway.broker.directory.user_by_name
    assert (others["u"], others["v"]) == (users["u"], users["v"])
    assert users["u"].scram_sha_256
    assert "scram_sha_256" not in next(user for user in other.get("/definitions")["users"] if user["name"] == "v")


def test_a_second_import_changes_nothing(console: Console) -> None:
    console.post("/definitions", WHOLE)
    once = console.gateway.broker.vhost("shop").queue("orders")
    console.gateway.broker.directory.put_user(console._administrator())
    console.post("/definitions", WHOLE)
    assert console.gateway.broker.vhost("shop").queue("orders") is once


def test_imported_users_can_log_in(console: Console) -> None:
    console.post("/definitions", WHOLE)
    assert console.ask("GET", "/whoami", user="clerk").status == 401
    answer = console.ask("GET", "/whoami", user=None, headers={"Authorization": "Basic Y2xlcms6c2VjcmV0"})
    assert answer.json == {"name": "clerk", "tags": ["management"]}


def test_exclusive_queues_are_not_exported(console: Console) -> None:
    owner = object()
    vhost = console.gateway.vhost
    queue = vhost.declare_queue("mine", owner=owner)
    vhost.bind(vhost.exchange("amq.direct"), queue, "k")
    exported = console.get("/definitions/%2F")
    assert (exported["queues"], exported["bindings"], exported["exchanges"]) == ([], [], [])


WRONG = [
    ("/definitions", b"{x", "failed_to_parse_json"),
    (
        "/definitions",
        b'{"queues": [{"name": "q", "vhost": "none"}]}',
        "definitions: queues[0]: vhost none not found",
    ),
    ("/definitions", b'{"queues": [{}]}', "definitions: queues[0].name: is missing"),
    (
        "/definitions/%2F",
        b'{"exchanges": [{"name": "x", "type": "nope"}]}',
        "definitions: exchanges[0]: unknown exchange type 'nope'",
    ),
]


@pytest.mark.parametrize(("path", "content", "reason"), WRONG)
def test_invalid_definitions_are_refused(console: Console, path: str, content: bytes, reason: str) -> None:
    answer = console.ask("POST", path, content=content)
    assert answer.result == (400, {"error": "bad_request", "reason": reason})


def test_an_export_of_an_unknown_virtual_host_is_refused(console: Console) -> None:
    assert console.ask("POST", "/definitions/none", {}).status == 404
    assert console.ask("GET", "/definitions/none").status == 400


def test_a_check_reports_what_an_import_would_and_changes_nothing(console: Console) -> None:
    wrong = {"vhosts": [{"name": "new"}], "permissions": [{"user": "x", "vhost": "new", **NOTHING}]}
    refused = console.ask("POST", "/definitions-check", wrong)
    assert (refused.status, refused.json["reason"]) == (400, "definitions: permissions[0]: no user 'x'")
    assert console.ask("POST", "/definitions-check", WHOLE).status == 204
    assert list(console.gateway.broker.vhost_by_name) == ["/"]


def test_a_broker_with_one_cell_makes_no_virtual_host_in_another_one(console: Console) -> None:
    refused = console.ask("POST", "/definitions", {"vhosts": [{"name": "new", "cell": 2}]})
    assert "vhosts[0]: vhost 'new': cell must be 1, because there is one cell" in refused.json["reason"]
    assert console.ask("POST", "/definitions", {"vhosts": [{"name": "new", "cell": 1}]}).status == 204
