"""Explanations over HTTP: checks, bindings, policies, plugins and queues, for the addresses of every protocol."""

from typing import Any

import pytest

from tests.management.console import Console


@pytest.fixture
def shop(console: Console) -> Console:
    """A topic exchange with an alternate and two queues; one is full."""
    console.put("/exchanges/%2F/spare", {"type": "fanout"})
    console.put("/exchanges/%2F/orders", {"type": "topic", "arguments": {"alternate-exchange": "spare"}})
    for name in ("eu", "us", "full", "rest"):
        console.put(f"/queues/%2F/{name}", {})
    for queue, key in (("eu", "eu.*"), ("us", "us.#"), ("full", "eu.paid")):
        console.post(f"/bindings/%2F/e/orders/q/{queue}", {"routing_key": key})
    console.post("/bindings/%2F/e/spare/q/rest", {})
    limit = {"pattern": "^full$", "apply-to": "queues", "definition": {"max-length": 0, "overflow": "reject-publish"}}
    console.put("/policies/%2F/short", limit)
    return console


def explained(console: Console, **fields: Any) -> Any:
    return console.post("/explain/%2F", fields)


def matched(answer: Any) -> list[tuple[str, bool]]:
    return [(each["routing_key"], each["matched"]) for x in answer["exchanges"] for each in x["bindings"]]


def test_bindings_plugins_policies_and_refusals_are_shown(shop: Console) -> None:
    answer = explained(shop, exchange="orders", routing_key="eu.paid")
    [exchange] = answer["exchanges"]
    assert (exchange["name"], exchange["type"], exchange["plugin"]) == ("orders", "topic", "exchange-topic")
    assert matched(answer) == [("eu.*", True), ("eu.paid", True), ("us.#", False)]
    assert (exchange["bindings_tried"], exchange["bindings_matched"]) == (3, 2)
    assert (answer["outcome"], answer["allowed"], answer["queue_count"]) == ("routed", True, 2)
    eu, full = sorted(answer["queues"], key=lambda queue: queue["name"])
    assert (eu["name"], eu["policy"], eu["refusal"]) == ("eu", None, None)
    assert (full["name"], full["policy"], full["refusal"]) == ("full", "short", "maxlen")
    assert full["effective_settings"]["max-length"] == {"value": 0, "source": "policy short"}


def test_the_alternate_exchange_is_followed(shop: Console) -> None:
    answer = explained(shop, exchange="orders", routing_key="nowhere")
    assert [(x["name"], x["used_alternate"]) for x in answer["exchanges"]] == [("orders", True), ("spare", False)]
    assert [queue["name"] for queue in answer["queues"]] == ["rest"]


def test_cc_and_bcc_are_followed(shop: Console) -> None:
    answer = explained(shop, exchange="orders", routing_key="eu.x", headers={"CC": ["us.y"], "BCC": ["eu.paid"]})
    assert answer["routing_keys"] == ["eu.x", "us.y", "eu.paid"]
    assert {queue["name"] for queue in answer["queues"]} == {"eu", "us", "full"}


def test_nothing_is_published(shop: Console) -> None:
    explained(shop, exchange="orders", routing_key="us.x")
    assert len(shop.gateway.broker.vhost("/").queue_by_name["us"]) == 0


@pytest.mark.parametrize("name", ["", "amq.default"])
def test_the_default_exchange_is_explained(shop: Console, name: str) -> None:
    answer = explained(shop, exchange=name, routing_key="eu")
    assert (answer["outcome"], matched(answer)) == ("routed", [("eu", True)])
    assert explained(shop, exchange=name, routing_key="nope")["outcome"] == "unroutable"


def test_an_mqtt_topic_is_translated(shop: Console) -> None:
    shop.post("/bindings/%2F/e/amq.topic/q/eu", {"routing_key": "a.*"})
    answer = explained(shop, mqtt_topic="a/b", client_id="c1")
    assert (answer["exchange"], answer["routing_key"], answer["outcome"]) == ("amq.topic", "a.b", "routed")
    reserved = explained(shop, mqtt_topic="$SYS/x")
    assert [check["check"] for check in reserved["checks"] if not check["allowed"]] == ["address"]


def test_a_stomp_destination_is_translated(shop: Console) -> None:
    answer = explained(shop, stomp_destination="/exchange/orders/us.x")
    assert (answer["exchange"], answer["routing_key"], answer["outcome"]) == ("orders", "us.x", "routed")
    new = explained(shop, stomp_destination="/queue/new")
    assert (new["declares_queue"], new["outcome"]) == ("new", "unroutable")


def test_the_permissions_of_another_user_are_checked(shop: Console) -> None:
    shop.gateway.add_user("reader", "reader", "/", (".*", "^$", ".*"), "management")
    answer = explained(shop, exchange="orders", routing_key="us.x", user="reader")
    [refused] = [check for check in answer["checks"] if not check["allowed"]]
    assert refused["check"] == "write"
    assert "access to exchange 'orders' in vhost '/' refused for user 'reader'" in refused["reason"]
    assert (answer["allowed"], answer["outcome"]) == (False, "routed")
    stranger = explained(shop, exchange="orders", routing_key="us.x", user="stranger")
    assert [(check["check"], check["allowed"]) for check in stranger["checks"]] == [("vhost", False)]


def test_topic_permissions_use_the_client_id(shop: Console) -> None:
    shop.gateway.add_user("device", "device", "/", (".*", ".*", ".*"))
    fields = {"exchange": "amq.topic", "write": "^{client_id}\\.", "read": ".*"}
    shop.put("/topic-permissions/%2F/device", fields)
    own = explained(shop, mqtt_topic="c1/up", client_id="c1", user="device")
    other = explained(shop, mqtt_topic="c2/up", client_id="c1", user="device")
    assert (own["allowed"], other["allowed"]) == (True, False)


def test_the_plugins_of_interceptors_are_listed_and_not_called(shop: Console) -> None:
    assert explained(shop, exchange="orders", routing_key="us.x")["interceptors"] == []
    shop.gateway.broker.declare_vhost("limited", plugins={"interceptor-timestamp": {}})
    fields = {"exchange": "amq.direct", "routing_key": "k", "user": "guest"}
    answer = shop.post("/explain/limited", fields)
    assert (answer["interceptors"], answer["outcome"]) == (["interceptor-timestamp"], "unroutable")


def test_an_interceptor_is_listed_for_its_exchanges_only(shop: Console) -> None:
    rules = [{"exchange": "amq.direct", "set": {"a": 1}}]
    shop.gateway.broker.declare_vhost("rewritten", plugins={"interceptor-rewrite": {"rules": rules}})
    for exchange, plugins in (("amq.direct", ["interceptor-rewrite"]), ("amq.fanout", [])):
        fields = {"exchange": exchange, "routing_key": "k", "user": "guest"}
        assert shop.post("/explain/rewritten", fields)["interceptors"] == plugins


def test_only_administrators_explain_for_others(shop: Console) -> None:
    shop.add_user("al", "management")
    fields = {"exchange": "orders", "routing_key": "x"}
    assert shop.ask("POST", "/explain/%2F", fields, user="al").status == 200
    assert shop.ask("POST", "/explain/%2F", fields | {"user": "guest"}, user="al").status == 401


WRONG = [
    ({}, 400, "one of exchange, mqtt_topic, stomp_destination is required, not none"),
    ({"exchange": "x", "mqtt_topic": "y"}, 400, "is required, not exchange and mqtt_topic"),
    ({"exchange": "amq.direct", "key": "x"}, 400, "unknown field 'key'; there are client_id, exchange"),
    ({"mqtt_topic": "a/#"}, 400, "'a/#' is not a valid topic name"),
    ({"mqtt_topic": "a", "routing_key": "b"}, 400, "routing_key has no effect with mqtt_topic"),
    ({"exchange": "amq.direct", "client_id": "b"}, 400, "client_id has an effect with mqtt_topic only"),
    ({"stomp_destination": "/nope/x"}, 400, "'/nope/x' is not a valid destination"),
    ({"exchange": "nope"}, 404, "no exchange 'nope' in vhost '/'"),
    ({"exchange": "amq.direct", "headers": {}, "properties": {"headers": {}}}, 400, "headers are given twice"),
]


@pytest.mark.parametrize(("fields", "status", "reason"), WRONG)
def test_wrong_requests_are_refused(console: Console, fields: Any, status: int, reason: str) -> None:
    answer = console.ask("POST", "/explain/%2F", fields)
    assert answer.status == status
    assert reason in str(answer.json["reason"])
