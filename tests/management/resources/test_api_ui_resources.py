"""Previews of policies, checks of permissions, topology, STOMP subscriptions, WebSockets: what the web UI needs."""

from typing import Any

import pytest

from tests.management.console import Console


def preview(console: Console, name: str, noun: str = "policies", **fields: object) -> object:
    return console.post(f"/{noun}/%2F/{name}/preview", {"pattern": "", "definition": {}} | fields)


def test_a_preview_names_the_objects_and_the_settings_that_would_change(console: Console) -> None:
    console.put("/queues/%2F/a1", {})
    console.put("/queues/%2F/a2", {"arguments": {"x-max-length": 5}})
    console.put("/queues/%2F/b", {})
    assert preview(console, "limits", pattern="^a[0-9]", definition={"max-length": 9}) == {
        "queues": 2,
        "exchanges": 0,
        "changed": 2,
        "changes": [
            {
                "kind": "queue",
                "name": "a1",
                "policy": {"before": None, "after": "limits"},
                "operator_policy": {"before": None, "after": None},
                "settings": {"max-length": {"before": None, "after": 9}},
            },
            {
                "kind": "queue",
                "name": "a2",
                "policy": {"before": None, "after": "limits"},
                "operator_policy": {"before": None, "after": None},
                "settings": {},
            },
        ],
    }
    assert console.get("/policies") == []
    assert console.get("/queues/%2F/a1")["policy"] is None


def test_a_preview_with_an_empty_body_is_that_of_a_removal(console: Console) -> None:
    console.put("/exchanges/%2F/x", {"type": "fanout"})
    console.put("/policies/%2F/other", {"pattern": "^x$", "definition": {"alternate-exchange": "amq.fanout"}})
    console.gateway.settle()
    answer = console.ask("POST", "/policies/%2F/other/preview", content=b"").json
    assert (answer["queues"], answer["exchanges"], answer["changed"]) == (0, 0, 1)
    assert answer["changes"][0]["settings"] == {"alternate-exchange": {"before": "amq.fanout", "after": None}}


def test_a_preview_of_an_invalid_policy_is_refused_as_the_policy(console: Console) -> None:
    answer = console.ask("POST", "/policies/%2F/p/preview", {"pattern": "(", "definition": {"max-length": 1}})
    assert answer.status == 400
    answer = console.ask("POST", "/policies/%2F/p/preview", {"pattern": "a", "definition": {"max-length": -1}})
    assert "is not a valid maximum length" in answer.json["reason"]


def test_previews_require_the_tags_of_the_policies(console: Console) -> None:
    console.add_user("maker", "policymaker")
    fields = {"pattern": "a", "definition": {"max-length": 1}}
    assert console.ask("POST", "/policies/%2F/p/preview", fields, user="maker").status == 200
    assert console.ask("POST", "/operator-policies/%2F/p/preview", fields, user="maker").status == 401


def test_a_check_names_what_a_user_may_do(console: Console) -> None:
    console.gateway.add_user("otto", "otto", "/", ("^own", "^own|^shared", ""))
    answer = console.get("/permissions/%2F/otto/check?kind=queue&name=shared")
    assert answer["operations"] == {"configure": False, "write": True, "read": False}
    assert (answer["enters"], answer["topic"]) == (True, {})


def test_a_check_of_an_exchange_includes_topic_permissions(console: Console) -> None:
    console.gateway.add_user("otto", "otto", "/", (".*", ".*", ".*"))
    console.put("/topic-permissions/%2F/otto", {"exchange": "amq.topic", "write": "^a", "read": "^b"})
    answer = console.get("/permissions/%2F/otto/check?kind=exchange&name=amq.topic&routing_key=a.b")
    assert answer["topic"] == {"write": True, "read": False}


def test_a_check_of_a_user_without_permissions_says_so(console: Console) -> None:
    answer = console.get("/permissions/%2F/absent/check?name=q")
    assert (answer["enters"], answer["operations"]) == (False, {})
    assert answer["reason"] != ""


def test_users_check_their_own_permissions_only(console: Console) -> None:
    for name in ("otto", "anna"):
        console.add_user(name, "management")
    answer = console.ask("GET", "/permissions/%2F/otto/check?name=q", user="otto")
    assert answer.json["operations"] == {"configure": True, "write": True, "read": True}
    assert console.ask("GET", "/permissions/%2F/anna/check?name=q", user="otto").status == 401


@pytest.mark.parametrize("query", ["kind=topic&name=q", "kind=&name=q"])
def test_a_check_of_another_kind_is_refused(console: Console, query: str) -> None:
    assert console.ask("GET", f"/permissions/%2F/guest/check?{query}").status == 400


def bind(console: Console, source: str, kind: str, destination: str, key: str = "") -> None:
    console.post(f"/bindings/%2F/e/{source}/{kind}/{destination}", {"routing_key": key})


def test_a_topology_follows_bindings_in_both_directions(console: Console) -> None:
    for name in ("first", "second"):
        console.put(f"/exchanges/%2F/{name}", {"type": "fanout"})
    for name in ("q", "other"):
        console.put(f"/queues/%2F/{name}", {})
    bind(console, "first", "e", "second", "a")
    bind(console, "second", "q", "q", "b")
    bind(console, "second", "q", "q", "c")
    drawn = console.get("/topology/%2F?queue=q")
    assert [(node["kind"], node["name"]) for node in drawn["nodes"]] == [
        ("queue", "q"), ("exchange", "second"), ("exchange", "first"),
    ]  # fmt: skip
    edges = {(edge["source"], edge["destination"]): edge for edge in drawn["edges"]}
    assert edges["second", "q"]["bindings"] == 2
    assert edges["second", "q"]["routing_keys"] == ["b", "c"]
    assert edges["second", "q"]["rate"] == 0.0
    assert edges["first", "second"]["rate"] == 0.0
    assert drawn["is_partial"] is False
    assert [node["name"] for node in console.get("/topology/%2F")["nodes"]] == ["first", "second", "q"]


Rates = dict[tuple[str, str], tuple[float | None, float]]


def rates(console: Console, *publishes: tuple[str, str]) -> Rates:
    """Publish by (exchange, key); return the rate and the limit of each edge, in messages."""
    body = {"properties": {}, "payload": "x", "payload_encoding": "string"}

    def publish_all() -> float:
        for exchange, key in publishes:
            console.post(f"/exchanges/%2F/{exchange}/publish", body | {"routing_key": key})
        list(console.statistics.sample())
        return console.clock.seconds()

    began_s = publish_all()
    seconds = publish_all() - began_s
    edges = console.get("/topology/%2F")["edges"]

    def messages(rate: float | None) -> Any:
        return None if rate is None else round(rate * seconds, 3)

    return {
        (edge["source"], edge["destination"]): (messages(edge["rate"]), messages(edge["at_most"])) for edge in edges
    }


def test_an_arrow_has_the_rate_of_the_messages_that_can_only_go_over_it(console: Console) -> None:
    for name in ("first", "second"):
        console.put(f"/exchanges/%2F/{name}", {"type": "topic"})
    for name in ("q", "own"):
        console.put(f"/queues/%2F/{name}", {})
    bind(console, "first", "e", "second", "a")
    bind(console, "second", "q", "q", "#")
    bind(console, "first", "q", "own", "#")
    found = rates(console, ("first", "a"), ("first", "b"), ("second", "c"))
    assert found == {("first", "second"): (1, 1), ("second", "q"): (2, 2), ("first", "own"): (2, 2)}


def test_an_arrow_on_one_of_several_ways_has_a_limit_only(console: Console) -> None:
    for name in ("first", "second"):
        console.put(f"/exchanges/%2F/{name}", {"type": "topic"})
    console.put("/queues/%2F/q", {})
    bind(console, "first", "e", "second", "a")
    bind(console, "second", "q", "q", "#")
    bind(console, "first", "q", "q", "#")
    found = rates(console, ("first", "a"), ("first", "b"))
    assert set(found.values()) == {(None, 2)}


def test_an_arrow_to_an_exchange_has_at_most_the_rate_of_its_source(console: Console) -> None:
    for name in ("first", "second"):
        console.put(f"/exchanges/%2F/{name}", {"type": "fanout"})
    bind(console, "first", "e", "second")
    for name in ("q1", "q2"):
        console.put(f"/queues/%2F/{name}", {})
        bind(console, "second", "q", name)
    found = rates(console, ("first", ""))
    assert found == {("first", "second"): (1, 1), ("second", "q1"): (1, 1), ("second", "q2"): (1, 1)}


def test_a_topology_is_limited(console: Console) -> None:
    for number in range(5):
        console.put(f"/queues/%2F/q{number}", {})
        bind(console, "amq.fanout", "q", f"q{number}")
    drawn = console.get("/topology/%2F?exchange=amq.fanout&limit=3")
    assert (len(drawn["nodes"]), len(drawn["edges"]), drawn["is_partial"]) == (3, 2, True)
    assert console.ask("GET", "/topology/%2F?limit=301").status == 400
    assert console.ask("GET", "/topology/%2F?queue=absent").status == 404


def test_stomp_subscriptions_are_those_of_stomp_clients(console: Console) -> None:
    console.put("/queues/%2F/q", {})
    assert console.get("/stomp/subscriptions") == []
    assert console.get("/stomp/subscriptions/%2F?page=1")["total_count"] == 0


def test_protocols_without_connections_are_not_listed(console: Console) -> None:
    assert console.get("/protocols") == []


def test_streams_are_listed_without_other_queues(console: Console) -> None:
    console.put("/queues/%2F/q", {})
    console.put("/queues/%2F/s", {"durable": True, "arguments": {"x-queue-type": "stream"}})
    assert [stream["name"] for stream in console.get("/streams")] == ["s"]
    assert console.get("/streams/%2F?page=1")["total_count"] == 1
