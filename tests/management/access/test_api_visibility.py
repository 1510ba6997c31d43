"""No answer shows a user what the user may not see: entities of other virtual hosts, and other users."""

import re

import pytest

from gateway.management.http.routes import Endpoint
from gateway.management.resources.table import ROUTES
from tests.management.console import Console

#: In the name of everything that the user may not see.
SECRET = "secret"
VHOST = f"{SECRET}-vhost"

#: Values of the variables of paths.
VALUES = {"vhost": VHOST, "kind": "q", "node": "gateway%40here", "key": f"{SECRET}-key"}

HIDDEN = [
    (f"vhosts/{VHOST}", {"description": SECRET}),
    (f"users/{SECRET}-user", {"password": SECRET, "tags": "administrator"}),
    (f"permissions/{VHOST}/{SECRET}-user", {"configure": SECRET, "write": SECRET, "read": SECRET}),
    (f"topic-permissions/{VHOST}/{SECRET}-user", {"exchange": SECRET, "write": SECRET, "read": SECRET}),
    (f"exchanges/{VHOST}/{SECRET}", {"type": "topic"}),
    (f"queues/{VHOST}/{SECRET}", {"durable": True}),
    (f"queues/{VHOST}/{SECRET}-stream", {"durable": True, "arguments": {"x-queue-type": "stream"}}),
    (f"policies/{VHOST}/{SECRET}", {"pattern": SECRET, "definition": {"max-length": 9}}),
    (f"operator-policies/{VHOST}/{SECRET}", {"pattern": SECRET, "definition": {"max-length": 9}}),
    (f"stream/super-streams/{VHOST}/{SECRET}-super", {"partitions": 1}),
    (f"global-parameters/{SECRET}", {"value": SECRET}),
    (f"vhost-limits/{VHOST}/max-queues", {"value": 77}),
]


@pytest.fixture(scope="module")
def guarded() -> Console:
    """A console with a virtual host that only administrators may enter, in which a client is connected."""
    console = Console()
    for path, fields in HIDDEN:
        assert console.ask("PUT", f"/{path}", fields).status in (201, 204), path
    console.post(f"/bindings/{VHOST}/e/{SECRET}/q/{SECRET}", {"routing_key": f"{SECRET}-key"})
    console.post(
        f"/exchanges/{VHOST}/amq.default/publish",
        {"properties": {}, "routing_key": SECRET, "payload": SECRET, "payload_encoding": "string"},
    )
    console.gateway.add_user("boss", "boss", VHOST, (".*", ".*", ".*"), "administrator")
    console.gateway.add_user("anna", "anna", "/", (".*", ".*", ".*"), "management")
    console.gateway.add_user("peter", "peter", "/", (".*", ".*", ".*"), "policymaker")
    return console


READS = [route for route in ROUTES if route.method == "GET" and not route.path.endswith("/stream")]


def path_of(route: Endpoint) -> str:
    return re.sub(r"<(\w+)>", lambda name: VALUES.get(name[1], SECRET), route.path)


@pytest.mark.parametrize("user", ["anna", "peter"])
@pytest.mark.parametrize("route", READS, ids=lambda route: route.path)
def test_a_user_sees_nothing_of_a_foreign_virtual_host(guarded: Console, route: Endpoint, user: str) -> None:
    if route.path in ("/auth/hash_password/<password>", "/openapi.json"):
        return
    if route.path.startswith("/global-parameters") and user == "peter":
        return  # global parameters belong to no virtual host: policymakers read them, as in RabbitMQ
    answer = guarded.ask("GET", path_of(route), user=user)
    asked = SECRET in path_of(route)  # errors may repeat the names of the request
    assert answer.status in (200, 400, 401, 403, 404, 503)
    if answer.status == 200 or not asked:
        assert SECRET not in answer.content.decode(errors="replace")
        assert not re.search(r'"max-(queues|length)":\s*(77|9)\b', answer.content.decode(errors="replace"))


def test_the_same_requests_show_an_administrator_everything(guarded: Console) -> None:
    """The test above would fail for a user with access: it looks for names that are there."""
    shown = {route.path for route in READS if SECRET in guarded.ask("GET", path_of(route)).content.decode("latin-1")}
    assert {"/vhosts", "/queues", "/exchanges", "/bindings", "/policies", "/users", "/definitions"} <= shown


def test_connections_of_others_are_not_shown(guarded: Console) -> None:
    guarded.gateway.connect()
    assert len(guarded.get("/connections")) == 1
    for path in ("/connections", "/channels", "/consumers", "/vhosts/%2F/connections"):
        assert guarded.get(path, user="anna") == [], path


def test_totals_count_what_the_user_may_see(guarded: Console) -> None:
    totals, all_totals = (guarded.get("/overview", user=user)["object_totals"] for user in ("anna", "guest"))
    assert totals["queues"] == 0
    assert all_totals["queues"] >= 3
    assert "listeners" not in guarded.get("/overview", user="anna")


@pytest.mark.parametrize("name", ["password", "password_hash", "scram_sha_256"])
def test_only_administrators_see_password_hashes(guarded: Console, name: str) -> None:
    for route in READS:
        answer = guarded.ask("GET", path_of(route), user="peter")
        if answer.status == 200 and route.path != "/openapi.json":
            assert f'"{name}"' not in answer.content.decode("latin-1"), route.path
