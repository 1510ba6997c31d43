"""Declarative definitions over HTTP: their plan, and its application."""

from typing import Any

import pytest

from tests.management.console import Console

Fields = dict[str, Any]

SHOP: Fields = {
    "rabbit_version": "4.0.5",
    "vhosts": [{"name": "/"}],
    "exchanges": [{"name": "e", "vhost": "/", "type": "topic"}],
    "queues": [{"name": "q", "vhost": "/", "arguments": {"x-queue-type": "classic"}}],
    "bindings": [{"source": "e", "vhost": "/", "destination": "q", "routing_key": "k"}],
    "policies": [{"name": "p", "vhost": "/", "pattern": "^q", "definition": {"max-length": 5}}],
    "permissions": [{"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}],
}

TYPES = ("classic", "quorum", "stream")


def plan(console: Console, definitions: Fields, query: str = "", vhost: str = "") -> Fields:
    found: Fields = console.post(f"/definitions-plan{vhost}{query}", definitions)
    return found


def apply(console: Console, definitions: Fields, query: str = "", vhost: str = "") -> Fields:
    done: Fields = console.post(f"/definitions-apply{vhost}{query}", definitions)
    return done


def shown(plan: Fields) -> list[tuple[str, str, str]]:
    return [(step["action"], step["category"], step["name"]) for step in plan["steps"]]


def test_a_plan_lists_what_would_be_created_and_changes_nothing(console: Console) -> None:
    wanted = [
        ("create", "exchanges", "e"),
        ("create", "policies", "p"),
        ("create", "queues", "q"),
        ("create", "bindings", "e queue q k"),
    ]
    assert shown(plan(console, SHOP)) == wanted
    assert console.get("/queues") == []
    done = apply(console, SHOP)
    assert (done["create"], done["change"], done["delete"]) == (4, 0, 0)
    assert [queue["name"] for queue in console.get("/queues")] == ["q"]


def test_applying_again_has_nothing_to_do(console: Console) -> None:
    apply(console, SHOP)
    assert plan(console, SHOP, "?prune=true")["steps"] == []
    older = {**SHOP, "rabbit_version": "3.8.0", "queues": [{"name": "q", "vhost": "/", "arguments": {}}]}
    assert plan(console, older)["steps"] == []


@pytest.mark.parametrize("default", ["classic", "quorum"])
def test_queues_without_a_type_have_that_of_their_virtual_host(console: Console, default: str) -> None:
    queues = [{"name": "q", "vhost": "v"}, {"name": "brief", "vhost": "v", "auto_delete": True}]
    wanted = {"vhosts": [{"name": "v", "default_queue_type": default}], "queues": queues}
    apply(console, wanted)
    assert console.get("/queues/v/q")["type"] == default
    assert plan(console, wanted)["steps"] == []
    assert plan(console, {"queues": queues})["steps"] == []
    assert plan(console, {"queues": [{"name": "q"}]}, vhost="/v")["steps"] == []


@pytest.mark.parametrize("default", ["classic", "quorum", "stream"])
def test_queues_have_the_type_that_an_export_names_beside_their_arguments(console: Console, default: str) -> None:
    queues = [{"name": type, "vhost": "v", "type": type, "arguments": {}} for type in TYPES]
    wanted = {"vhosts": [{"name": "v", "metadata": {"default_queue_type": default}}], "queues": queues}
    apply(console, wanted)
    assert {row["name"]: row["type"] for row in console.get("/queues/v")} == {each: each for each in TYPES}
    assert plan(console, wanted)["steps"] == []
    console.post("/definitions", wanted)
    assert {row["name"]: row["type"] for row in console.get("/queues/v")} == {each: each for each in TYPES}


def test_queues_keep_their_type_in_an_export_of_a_virtual_host_with_another_default(console: Console) -> None:
    console.put("/vhosts/v", {"default_queue_type": "classic"})
    console.put("/permissions/v/guest", {"configure": ".*", "write": ".*", "read": ".*"})
    console.put("/queues/v/q", {"durable": True})
    console.put("/vhosts/v", {"default_queue_type": "quorum"})
    exported = console.get("/definitions")
    assert plan(console, exported, "?prune=true")["steps"] == []
    console.delete("/queues/v/q")
    console.post("/definitions", exported)
    assert console.get("/queues/v/q")["type"] == "classic"


def test_the_export_of_the_broker_has_nothing_to_do(console: Console) -> None:
    apply(console, SHOP)
    console.add_user("u", "management")
    console.put("/vhost-limits/%2F/max-queues", {"value": 3})
    exported = console.get("/definitions")
    assert plan(console, exported, "?prune=true")["steps"] == []
    of_vhost = console.get("/definitions/%2F")
    assert plan(console, of_vhost, "?prune=true", "/%2F")["steps"] == []


def test_a_change_shows_what_differs(console: Console) -> None:
    apply(console, SHOP)
    changed = {"policies": [{**SHOP["policies"][0], "definition": {"max-length": 9}}]}
    (step,) = plan(console, changed)["steps"]
    assert (step["action"], step["before"]) == ("change", {"definition": {"max-length": 5}})
    assert step["after"] == {"definition": {"max-length": 9}}
    apply(console, changed)
    assert console.get("/policies/%2F/p")["definition"] == {"max-length": 9}


def test_pruning_deletes_only_in_the_categories_of_the_file(console: Console) -> None:
    apply(console, SHOP)
    console.put("/queues/%2F/other", {"durable": True})
    console.post("/bindings/%2F/e/e/q/other", {"routing_key": "x"})
    assert shown(plan(console, {"queues": []}, "?prune=true")) == [
        ("delete", "queues", "q"),
        ("delete", "queues", "other"),
    ]
    done = apply(console, SHOP, "?prune=true")
    assert shown(done) == [("delete", "queues", "other")]  # its binding goes with it
    assert [queue["name"] for queue in console.get("/queues")] == ["q"]
    assert plan(console, SHOP, "?prune=true")["steps"] == []


@pytest.mark.parametrize("name", ["stomp-subscription-5d41", "federation: e -> rabbit@far:/:e", "amq.gen-8x"])
def test_pruning_keeps_what_clients_named_for_themselves(console: Console, name: str) -> None:
    apply(console, SHOP)
    console.gateway.vhost.declare_queue(name, is_durable=True, is_server_named=True)
    console.gateway.vhost.declare_exchange("federation: e -> rabbit@far:/:e A", "fanout", is_durable=True)
    console.gateway.vhost.declare_queue("other", is_durable=True)
    for source in ("e", "federation: e -> rabbit@far:/:e A"):
        binding = console.gateway.vhost.exchange(source), console.gateway.vhost.queue(name)
        console.gateway.vhost.bind(*binding, "k")
    assert shown(plan(console, SHOP, "?prune=true")) == [("delete", "queues", "other")]


def test_pruning_keeps_the_user_who_asks(console: Console) -> None:
    console.add_user("u", "management")
    done = apply(console, {"users": [], "permissions": []}, "?prune=true")
    assert shown(done) == [("delete", "users", "u")]
    assert [user["name"] for user in console.get("/users")] == ["guest"]


def test_a_conflict_refuses_the_whole_file(console: Console) -> None:
    apply(console, SHOP)
    definitions = {
        "exchanges": [{"name": "e", "vhost": "/", "type": "fanout"}],
        "queues": [{"name": "new", "vhost": "/", "arguments": {}}],
    }
    found = plan(console, definitions)
    assert (found["conflict"], found["create"]) == (1, 1)
    answer = console.ask("POST", "/definitions-apply", definitions)
    assert answer.status == 409
    assert "exchanges 'e' in vhost '/': it exists with other properties" in answer.json["reason"]
    assert [queue["name"] for queue in console.get("/queues")] == ["q"]


def test_an_invalid_entry_refuses_the_whole_file(console: Console) -> None:
    definitions = {
        "queues": [{"name": "new", "vhost": "/", "arguments": {}}],
        "policies": [{"name": "p", "vhost": "/", "pattern": "(", "definition": {"max-length": 5}}],
    }
    assert console.ask("POST", "/definitions-apply?prune=true", definitions).status == 400
    assert console.get("/queues") == []


def test_one_virtual_host_is_compared_and_pruned_alone(console: Console) -> None:
    console.put("/vhosts/v", {})
    console.put("/queues/v/old", {"durable": True})
    console.put("/queues/%2F/mine", {"durable": True})
    done = apply(console, {"queues": [{"name": "new", "vhost": "elsewhere"}]}, "?prune=true", "/v")
    assert shown(done) == [("create", "queues", "new"), ("delete", "queues", "old")]
    assert sorted(queue["name"] for queue in console.get("/queues")) == ["mine", "new"]
    assert console.ask("POST", "/definitions-plan/none", {"queues": []}).status == 404


def test_secrets_are_not_shown(console: Console) -> None:
    console.put("/users/u", {"password": "p", "tags": ""})
    user = console.get("/users/u")
    (step,) = plan(console, {"users": [{**user, "password_hash": "", "limits": {}}]})["steps"]
    assert (step["before"], step["after"]) == ({"password_hash": "***"}, {"password_hash": ""})


def test_only_administrators_compare(console: Console) -> None:
    console.add_user("m", "monitoring")
    assert console.ask("POST", "/definitions-plan", {}, user="m").status == 401


def test_applying_is_recorded(console: Console) -> None:
    apply(console, SHOP)
    (entry,) = console.get("/audit?action=definitions.*")["items"]
    assert (entry["action"], entry["details"]) == ("definitions.applied", {"create": 4, "change": 0, "delete": 0})


@pytest.mark.parametrize("path", ["/definitions-plan", "/definitions-apply"])
def test_what_is_not_json_is_refused(console: Console, path: str) -> None:
    assert console.ask("POST", path, content=b"{").status == 400


def test_a_plan_is_applied_only_as_it_was_shown(console: Console) -> None:
    seen = plan(console, SHOP)["plan"]
    assert plan(console, SHOP)["plan"] == seen
    console.put("/policies/%2F/p", SHOP["policies"][0])
    refusal = console.ask("POST", f"/definitions-apply?plan={seen}", SHOP)
    assert (refusal.status, refusal.json["error"]) == (409, "plan_changed")
    assert console.get("/queues") == []
    done = apply(console, SHOP, f"?plan={plan(console, SHOP)['plan']}")
    assert done["create"] == 3
