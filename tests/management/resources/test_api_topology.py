"""Exchanges, queues and bindings over HTTP, with RabbitMQ's error texts.

Rules: R151.
"""

from typing import Any

import pytest

from gateway.kernel.journal.records.access import TopicPermissionRecord
from tests.management.console import Console

Result = tuple[int, Any]


def bad_request(reason: object) -> Result:
    return 400, {"error": "bad_request", "reason": reason}


def not_found(reason: str) -> Result:
    return 404, {"error": "not_found", "reason": reason}


REFUSED: Result = (401, {"error": "not_authorised", "reason": "Access refused."})
MISSING: Result = (404, {"error": "Object Not Found", "reason": "Not Found"})
MADE: Result = (201, None)
DONE: Result = (204, None)


@pytest.fixture
def stocked(console: Console) -> Console:
    console.put("/exchanges/%2F/x1", {"type": "topic", "durable": True, "arguments": {"alternate-exchange": "lost"}})
    console.put("/queues/%2F/q1", {"durable": True, "arguments": {"x-max-length": 10}})
    console.post("/bindings/%2F/e/x1/q/q1", {"routing_key": "a.*", "arguments": {"n": 1}})
    console.post("/bindings/%2F/e/x1/q/q1", {"routing_key": "a b/c"})
    return console


CHANGES = [
    ("PUT", "/queues/%2F/new", {}, MADE),
    ("PUT", "/queues/%2F/new", {"durable": "true", "auto_delete": "false"}, MADE),
    ("PUT", "/queues/%2F/new", {"arguments": []}, MADE),
    ("PUT", "/queues/%2F/q1", {"durable": True, "arguments": {"x-max-length": 10}}, DONE),
    ("PUT", "/queues/%2F/q1", {"durable": False},
     bad_request("inequivalent arg 'durable' for queue 'q1' in vhost '/': received 'false' but current is 'true'")),
    ("PUT", "/queues/%2F/new", {"durable": "maybe"}, bad_request(["not_boolean", "maybe"])),
    ("PUT", "/queues/%2F/new", {"arguments": {"x-message-ttl": "a"}},
     bad_request("invalid arg 'x-message-ttl' for queue 'new' in vhost '/': \"expected integer, got longstr\"")),
    ("PUT", "/queues/%2F/amq.zz", {}, REFUSED),
    ("PUT", "/queues/novhost/q", {}, not_found("vhost_not_found")),
    ("DELETE", "/queues/%2F/none", None, MISSING),
    ("DELETE", "/queues/%2F/q1", None, DONE),
    ("DELETE", "/queues/%2F/q1?if-unused=true&if-empty=true", None, DONE),
    ("DELETE", "/queues/%2F/none/contents", None, MISSING),
    ("PUT", "/exchanges/%2F/new", {}, MADE),
    ("PUT", "/exchanges/%2F/new", {"type": "nope"}, bad_request("unknown exchange type 'nope'")),
    ("PUT", "/exchanges/%2F/x1", {"type": "direct"},
     bad_request("inequivalent arg 'type' for exchange 'x1' in vhost '/': received 'direct' but current is 'topic'")),
    ("PUT", "/exchanges/%2F/amq.foo", {"type": "direct"}, REFUSED),
    ("PUT", "/exchanges/%2F/amq.default", {"type": "direct"}, REFUSED),
    ("DELETE", "/exchanges/%2F/none", None, MISSING),
    ("DELETE", "/exchanges/%2F/amq.direct", None, REFUSED),
    ("DELETE", "/exchanges/%2F/amq.default", None, REFUSED),
    ("DELETE", "/exchanges/%2F/x1?if-unused=true", None, bad_request("exchange 'x1' in vhost '/' in use")),
    ("DELETE", "/exchanges/%2F/x1", None, DONE),
    ("POST", "/bindings/%2F/e/x1/q/none", {"routing_key": "a"}, not_found("no queue 'none' in vhost '/'")),
    ("POST", "/bindings/%2F/e/none/q/q1", {"routing_key": "a"}, not_found("no exchange 'none' in vhost '/'")),
    ("POST", "/bindings/%2F/e/amq.default/q/q1", {"routing_key": "a"}, REFUSED),
    ("DELETE", "/bindings/%2F/e/x1/q/q1/none", None, MISSING),
    ("DELETE", "/bindings/%2F/e/x1/q/q1/a%2Bb%252Fc", None, DONE),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "fields", "expected"), CHANGES, ids=lambda value: str(value)[:50])
def test_a_change_is_answered_as_rabbitmq_answers_it(
    stocked: Console, method: str, path: str, fields: object, expected: Result
) -> None:
    assert stocked.ask(method, path, fields).result == expected


LOCATIONS = [
    ("/bindings/%2F/e/x1/q/q1", {"routing_key": "a b/c"}, "q1/a%2Bb%252Fc"),
    ("/bindings/%2F/e/x1/q/q1", {}, "q1/~"),
    ("/bindings/%2F/e/x1/e/amq.fanout", {"routing_key": "#"}, "amq.fanout/%2523"),
]


@pytest.mark.parametrize(("path", "fields", "location"), LOCATIONS)
def test_the_location_of_a_new_binding_is_returned(stocked: Console, path: str, fields: Any, location: str) -> None:
    answer = stocked.ask("POST", path, fields)
    assert (answer.status, answer.headers["location"]) == (201, location)
    base = path.rpartition("/")[0]
    assert stocked.get(f"{base}/{location}")["routing_key"] == fields.get("routing_key", "")


def test_bindings_with_different_arguments_have_different_keys(stocked: Console) -> None:
    stocked.post("/bindings/%2F/e/x1/q/q1", {"routing_key": "a.*", "arguments": {"n": 2}})
    keys = [each["properties_key"] for each in stocked.get("/bindings/%2F/e/x1/q/q1")]
    starred = [key for key in keys if key.startswith("a.%2A~")]
    assert len(set(starred)) == 2
    for key in starred:
        assert len(key) == len("a.%2A~hadFaw")
        assert stocked.get(f"/bindings/%2F/e/x1/q/q1/{key}")["properties_key"] == key


def test_the_default_exchange_is_bound_to_every_queue(stocked: Console) -> None:
    implied = {
        "source": "", "vhost": "/", "destination": "q1", "destination_type": "queue", "routing_key": "q1",
        "arguments": {}, "properties_key": "q1",
    }  # fmt: skip
    assert stocked.get("/bindings/%2F/e/amq.default/q/q1") == [implied]
    assert stocked.get("/bindings/%2F/e//q/q1") == [implied]
    assert stocked.get("/bindings/%2F/e/amq.default/q/q1/q1") == implied
    assert implied in stocked.get("/queues/%2F/q1/bindings")
    assert implied in stocked.get("/bindings")
    assert stocked.get("/exchanges/%2F/amq.default/bindings/source") == [implied]


def test_bindings_are_listed_by_source_and_by_destination(stocked: Console) -> None:
    stocked.post("/bindings/%2F/e/x1/e/amq.fanout", {"routing_key": "#"})
    from_source = {(each["destination"], each["routing_key"]) for each in
                   stocked.get("/exchanges/%2F/x1/bindings/source")}  # fmt: skip
    assert from_source == {("q1", "a.*"), ("q1", "a b/c"), ("amq.fanout", "#")}
    (to_destination,) = stocked.get("/exchanges/%2F/amq.fanout/bindings/destination")
    assert (to_destination["source"], to_destination["destination_type"]) == ("x1", "exchange")


def test_an_exchange_is_shown_as_declared(stocked: Console) -> None:
    shown = stocked.get("/exchanges/%2F/x1")
    assert {name: shown[name] for name in ("name", "vhost", "type", "durable", "auto_delete", "internal")} == {
        "name": "x1", "vhost": "/", "type": "topic", "durable": True, "auto_delete": False, "internal": False,
    }  # fmt: skip
    assert shown["arguments"] == {"alternate-exchange": "lost"}


def test_a_queue_shows_the_sources_of_its_settings(stocked: Console) -> None:
    stocked.put("/policies/%2F/p1", {"pattern": "^q", "definition": {"max-length": 5, "message-ttl": 1000}})
    stocked.put("/operator-policies/%2F/op1", {"pattern": "^q1", "definition": {"max-length": 4}})
    shown = stocked.get("/queues/%2F/q1")
    assert (shown["policy"], shown["operator_policy"]) == ("p1", "op1")
    assert shown["effective_policy_definition"] == {"max-length": 4, "message-ttl": 1000}
    assert shown["effective_settings"] == {
        "max-length": {"value": 4, "source": "operator policy op1"},
        "message-ttl": {"value": 1000, "source": "policy p1"},
    }


def test_an_exclusive_queue_is_refused_over_http(console: Console) -> None:
    console.gateway.vhost.declare_queue("mine", owner=object())
    assert console.get("/queues/%2F/mine")["exclusive"] is True
    assert console.ask("DELETE", "/queues/%2F/mine").status == 400


def test_a_binding_of_an_exclusive_queue_is_refused_over_http(console: Console) -> None:
    vhost = console.gateway.vhost
    vhost.bind(vhost.exchange("amq.topic"), vhost.declare_queue("mine", owner=object()), "k")
    assert console.ask("DELETE", "/bindings/%2F/e/amq.topic/q/mine/k").status == 400
    assert len(console.get("/queues/%2F/mine/bindings")) == 2


DEAD_LETTERS = {"x-dead-letter-exchange": "amq.topic"}
PAST_TOPIC_PERMISSIONS = [
    ("PUT", "/queues/%2F/q", {"arguments": DEAD_LETTERS}, REFUSED),
    ("PUT", "/queues/%2F/q", {"arguments": {**DEAD_LETTERS, "x-dead-letter-routing-key": "bad"}}, REFUSED),
    ("PUT", "/queues/%2F/q", {"arguments": {**DEAD_LETTERS, "x-dead-letter-routing-key": "ok"}}, MADE),
    ("PUT", "/exchanges/%2F/x", {"type": "fanout", "arguments": {"alternate-exchange": "amq.topic"}}, REFUSED),
    ("POST", "/bindings/%2F/e/amq.fanout/e/amq.topic", {"routing_key": "ok"}, REFUSED),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "fields", "expected"), PAST_TOPIC_PERMISSIONS)
def test_topic_permissions_cannot_be_bypassed(
    console: Console, method: str, path: str, fields: object, expected: Result
) -> None:
    console.add_user("topical", "management")
    directory = console.gateway.broker.directory
    directory.put_topic_permission(TopicPermissionRecord("/", "topical", "amq.topic", "^ok", "^ok"))
    assert console.ask(method, path, fields, user="topical").result == expected


POLICIES = [
    ({}, bad_request("[{key_missing,pattern},{key_missing,definition}]")),
    ({"pattern": "a", "definition": {}}, bad_request("Validation failed\n\nno policy provided\n")),
    ({"pattern": "a", "definition": {"nope": 1}},
     bad_request('Validation failed\n\n[{<<"nope">>,1}] are not recognised policy settings\n')),
    ({"pattern": "a", "definition": {"max-length": 1}, "priority": "x"},
     bad_request('Validation failed\n\npriority should be a number, actually was <<"x">>\n')),
    ({"pattern": "a", "definition": {"max-length": 1}, "priority": "3"}, MADE),
    ({"pattern": "a", "definition": {"max-length": 1}, "apply-to": "queues"}, MADE),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "expected"), POLICIES)
def test_an_invalid_policy_is_refused(console: Console, fields: object, expected: Result) -> None:
    assert console.ask("PUT", "/policies/%2F/p", fields).result == expected


def test_policies_are_set_and_deleted(console: Console) -> None:
    rule = {"pattern": "^a", "definition": {"max-length": 1}, "apply-to": "queues", "priority": 2}
    assert console.put("/policies/%2F/p", rule) == 201
    assert console.put("/policies/%2F/p", rule) == 204
    assert console.get("/policies/%2F/p") == {"vhost": "/", "name": "p", **rule}
    assert console.get("/policies") == console.get("/policies/%2F") == [{"vhost": "/", "name": "p", **rule}]
    assert console.get("/operator-policies") == []
    assert console.get("/parameters/policy") == [{"component": "policy", "vhost": "/", "name": "p", "value": rule}]
    console.delete("/policies/%2F/p")
    assert console.ask("GET", "/policies/%2F/p").result == MISSING
    assert console.ask("PUT", "/policies/none/p", rule).result == not_found("vhost_not_found")
