"""Federated exchanges and queues of a gateway, whose upstream is another one; both in child processes."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError

import pika
import pytest

from tests.bridges.conftest import ChannelOf
from tests.bridges.far_broker import bodies_in, length_of, uri_of
from tests.management_client import get, put, request
from tests.running import Gateway
from tests.waiting import wait_until


def federate(gateway: Gateway, upstream: Gateway, apply_to: str, **value: Any) -> None:
    """Make ``fed...`` of a gateway get messages from an upstream."""
    keys = {key.replace("_", "-"): item for key, item in value.items()}
    keys = {"uri": uri_of(upstream), "reconnect-delay": 0.1, **keys}
    put(gateway, "parameters/federation-upstream/%2F/up", {"value": keys})
    definition = {"federation-upstream-set": "all"}
    put(gateway, "policies/%2F/fed", {"pattern": "^fed", "definition": definition, "apply-to": apply_to})


def wait_for_link(gateway: Gateway, status: str = "running") -> Mapping[str, Any]:
    """Wait until the only link has a status; return it."""

    def found() -> Mapping[str, Any]:
        links = get(gateway, "federation-links")
        return links[0] if [link["status"] for link in links] == [status] else {}

    return wait_until(found, lambda: f"{get(gateway, 'federation-links')}\n{gateway.log}")


def bindings_at(gateway: Gateway, exchange: str) -> list[str]:
    """Return the routing keys with which an exchange is bound."""
    return sorted(each["routing_key"] for each in get(gateway, f"exchanges/%2F/{exchange}/bindings/source"))


def test_an_exchange_gets_the_messages_it_has_bindings_for(near: Gateway, far: Gateway, channel_of: ChannelOf) -> None:
    here, there = channel_of(near), channel_of(far)
    here.exchange_declare("fed", "topic", durable=True)
    here.queue_declare("q")
    here.queue_bind("q", "fed", "a.#")
    federate(near, far, "exchanges")
    link = wait_for_link(near)
    assert (link["exchange"], link["upstream_exchange"], link["type"]) == ("fed", "fed", "exchange")
    assert "guest" not in link["uri"]
    # the labels of rabbitmq_exporter, which skips entries without an identifier
    assert {"id", "vhost", "status", "node", "exchange", "upstream", "upstream_exchange", "uri"} <= link.keys()
    there.basic_publish("fed", "a.b", b"one", pika.BasicProperties(headers={"own": 1}, user_id="guest"))
    there.basic_publish("fed", "b.b", b"unwanted")
    method, properties, body = wait_until(lambda: got if (got := here.basic_get("q", auto_ack=True))[0] else None)
    assert (body, method.routing_key, method.exchange, properties.user_id) == (b"one", "a.b", "fed", None)
    (entry,) = properties.headers["x-received-from"]
    assert (entry["exchange"], entry["cluster-name"], entry["vhost"], entry["redelivered"]) == (
        "fed",
        "far",
        "/",
        False,
    )
    here.queue_bind("q", "fed", "c")
    here.queue_unbind("q", "fed", "a.#")
    wait_until(lambda: bindings_at(far, "fed") == ["c"], lambda: str(bindings_at(far, "fed")))
    there.basic_publish("fed", "c", b"two")
    assert bodies_in(here, "q", 1) == [b"two"]


def test_bindings_that_changed_while_the_link_was_down_are_followed(
    near: Gateway, far: Gateway, channel_of: ChannelOf
) -> None:
    here = channel_of(near)
    here.exchange_declare("fed", "direct", durable=True)
    here.queue_declare("q", durable=True)
    here.queue_bind("q", "fed", "old")
    federate(near, far, "exchanges")
    wait_for_link(near)
    far.kill()
    wait_until(lambda: get(near, "federation-links")[0]["status"] != "running")
    here.queue_unbind("q", "fed", "old")
    here.queue_bind("q", "fed", "new")
    far.start()
    wait_for_link(near)
    wait_until(lambda: bindings_at(far, "fed") == ["new"], lambda: str(bindings_at(far, "fed")))
    there = channel_of(far)
    near.kill()
    there.basic_publish("fed", "new", b"waits", pika.BasicProperties(delivery_mode=2))
    near.start()
    assert bodies_in(channel_of(near), "q", 1) == [b"waits"]


def test_exchanges_that_federate_each_other_pass_a_message_once(
    near: Gateway, far: Gateway, channel_of: ChannelOf
) -> None:
    here, there = channel_of(near), channel_of(far)
    for channel in (here, there):
        channel.exchange_declare("fed", "fanout", durable=True)
        channel.queue_declare("q")
        channel.queue_bind("q", "fed")
    federate(near, far, "exchanges", max_hops=3)
    federate(far, near, "exchanges", max_hops=3)
    wait_for_link(near)
    wait_for_link(far)
    here.basic_publish("fed", "", b"h")
    there.basic_publish("fed", "", b"t")
    for channel in (here, there):
        assert sorted(bodies_in(channel, "q", 2)) == [b"h", b"t"]
    here.basic_publish("fed", "", b"last")
    for channel in (here, there):
        assert bodies_in(channel, "q", 1) == [b"last"]


def test_the_end_of_federation_removes_what_the_link_made(near: Gateway, far: Gateway, channel_of: ChannelOf) -> None:
    here = channel_of(near)
    here.exchange_declare("fed", "fanout", durable=True)
    federate(near, far, "exchanges", expires=60_000, message_ttl=1000)
    wait_for_link(near)
    (queue,) = get(far, "queues")
    assert (queue["name"], queue["arguments"]["x-expires"]) == ("federation: fed -> near:/:fed", 60_000)
    request(near, "DELETE", "policies/%2F/fed")
    wait_until(lambda: not get(near, "federation-links"))
    wait_until(lambda: not get(far, "queues"), lambda: near.log)
    assert [each["name"] for each in get(far, "exchanges") if "federation:" in each["name"]] == []


def test_a_queue_gets_messages_while_it_has_consumers(near: Gateway, far: Gateway, channel_of: ChannelOf) -> None:
    here, there = channel_of(near), channel_of(far)
    here.queue_declare("fed", durable=True)
    there.queue_declare("fed", durable=True)
    federate(near, far, "queues")
    link = wait_for_link(near)
    assert (link["queue"], link["upstream_queue"], link["type"]) == ("fed", "fed", "queue")
    there.basic_publish("", "fed", b"one")
    assert length_of(there, "fed") == 1
    got: list[tuple[bytes, Any]] = []
    tag = here.basic_consume("fed", lambda *delivery: got.append((delivery[3], delivery[2])), auto_ack=True)

    def arrived() -> bool:
        here.connection.process_data_events(0.02)
        return bool(got)

    wait_until(arrived, lambda: str(get(near, "federation-links")) + near.log)
    body, properties = got.pop()
    assert body == b"one"
    assert properties.headers["x-original-routing-key"] == "fed"
    assert properties.headers["x-received-from"][0]["visit-count"] == 1
    here.basic_cancel(tag)
    consumers = "queues/%2F/fed"
    wait_until(lambda: get(far, consumers)["consumers"] == 0)
    there.basic_publish("", "fed", b"stays")
    assert length_of(there, "fed") == 1


def test_invalid_upstreams_and_policies_are_refused(near: Gateway) -> None:
    cases: list[tuple[str, Any, str]] = [
        ("parameters/federation-upstream/%2F/u", {"value": {}}, 'Key "uri" not found in u'),
        ("parameters/federation-upstream-set/%2F/s", {"value": [{}]}, 'Key "upstream" not found in s'),
        ("parameters/federation-upstream-set/%2F/s", {"value": 1}, "s not a list 1"),
        (
            "policies/%2F/p",
            {"pattern": "", "definition": {"federation-upstream": "u", "federation-upstream-set": "s"}},
            "cannot specify federation-upstream, federation-upstream-set and federation-upstream-pattern together",
        ),
        (
            "policies/%2F/p",
            {"pattern": "", "definition": {"federation-upstream": 1}},
            "1 is not a valid federation upstream name",
        ),
        (
            "policies/%2F/p",
            {"pattern": "", "definition": {"federation-upstream-pattern": "("}},
            "could not compile pattern ( to a regular expression",
        ),
    ]
    for path, fields, fault in cases:
        with pytest.raises(HTTPError) as refusal:
            put(near, path, fields)
        assert fault in json.load(refusal.value)["reason"]


def test_a_link_is_restarted_by_its_identifier(near: Gateway, far: Gateway, channel_of: ChannelOf) -> None:
    channel_of(near).exchange_declare("fed", "fanout", durable=True)
    federate(near, far, "exchanges", uri="amqp://127.0.0.1:1")
    link = wait_for_link(near, "error")
    assert "refused" in link["error"]
    assert get(near, "federation-links/state/down/%2F")[0]["id"] == link["id"]
    federate(near, far, "exchanges")
    wait_for_link(near)
    request(near, "DELETE", f"federation-links/vhost/%2F/{link['id']}/near/restart")
    wait_for_link(near)
    assert get(near, "federation-links/state/down") == []
