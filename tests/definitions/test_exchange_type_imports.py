"""Definitions that RabbitMQ exports with exchanges of its plugins' types."""

import json

import pytest

from gateway.definitions import apply_definitions, parse_definitions
from gateway.kernel.errors import ConfigurationError
from gateway.testing import MemoryBroker


def exchange(name: str, type: str, **arguments: object) -> dict[str, object]:
    """Return an exchange as RabbitMQ exports it."""
    return {
        "name": name,
        "vhost": "/",
        "type": type,
        "durable": True,
        "auto_delete": False,
        "internal": False,
        "arguments": arguments,
    }


def queue(name: str) -> dict[str, object]:
    arguments = {"x-queue-type": "classic"}
    return {"name": name, "vhost": "/", "durable": True, "auto_delete": False, "arguments": arguments}


def binding(source: str, destination: str, key: str, type: str = "queue", **arguments: object) -> dict[str, object]:
    return {
        "source": source,
        "vhost": "/",
        "destination": destination,
        "destination_type": type,
        "routing_key": key,
        "arguments": arguments,
    }


EXPORT = {
    "rabbit_version": "4.0.5",
    "rabbitmq_version": "4.0.5",
    "product_name": "RabbitMQ",
    "vhosts": [{"name": "/", "description": "Default virtual host", "tags": [], "metadata": {}}],
    "exchanges": [
        exchange("orders", "x-consistent-hash"),
        exchange("customers", "x-consistent-hash", **{"hash-header": "customer"}),
        exchange("messages", "x-consistent-hash", **{"hash-property": "message_id"}),
        exchange("any", "x-random"),
        exchange("near", "x-local-random"),
        exchange("sharded", "x-modulus-hash"),
        exchange("room", "x-recent-history", **{"x-recent-history-length": 5}),
        exchange("prices", "x-lvc"),
        exchange("patterns", "x-rtopic"),
        exchange("selected", "x-jms-topic"),
        exchange("later", "x-delayed-message", **{"x-delayed-type": "x-consistent-hash"}),
    ],
    "queues": [queue("q1"), queue("q2"), queue("q3")],
    "bindings": [
        binding("orders", "q1", "1"),
        binding("orders", "q2", "20"),
        binding("orders", "customers", "5", "exchange"),
        binding("customers", "q3", "10"),
        binding("later", "q1", "1"),
        binding("room", "q1", ""),
        binding("prices", "q1", "EUR"),
        binding("near", "q1", ""),
        binding("selected", "q1", "", rjms_erlang_selector="{'>',{'ident',<<\"n\">>},1}."),
    ],
}


def apply(broker: MemoryBroker, definitions: object) -> None:
    apply_definitions(parse_definitions(json.dumps(definitions), "f"), broker.kernel, "f", "/")


def test_exchanges_of_all_types_are_imported_with_their_bindings() -> None:
    broker = MemoryBroker()
    apply(broker, EXPORT)
    for number in range(200):
        broker.publish(f"order {number}", exchange="orders")
    waiting = {name: len(broker.vhost.queue(name)) for name in ("q1", "q2", "q3")}
    assert sum(waiting.values()) == 200
    assert waiting["q2"] > waiting["q3"] > waiting["q1"]
    types = {each["name"]: each["type"] for each in EXPORT["exchanges"]}
    assert {name: broker.vhost.exchange(str(name)).type_name for name in types} == types
    assert all(not broker.vhost.exchange(str(name)).inert_reason for name in types)


def test_imported_exchanges_route_alike_after_a_restart() -> None:
    broker = MemoryBroker()
    apply(broker, EXPORT)
    broker.commit()
    again = broker.crashed()
    for each in (broker, again):
        for number in range(100):
            each.publish(f"order {number}", exchange="orders")
    for name in ("q1", "q2", "q3"):
        assert len(broker.vhost.queue(name)) == len(again.vhost.queue(name))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"bindings": [*EXPORT["bindings"], binding("orders", "q3", "heavy")]}, "must be an integer"),
        (
            {"exchanges": [exchange("x", "x-consistent-hash", **{"hash-property": "type"})]},
            "Unsupported property: type",
        ),
    ],
    ids=["weight", "property"],
)
def test_one_that_cannot_work_is_reported_and_nothing_is_imported(change: dict[str, object], text: str) -> None:
    broker = MemoryBroker()
    with pytest.raises(ConfigurationError, match=text):
        apply(broker, {**EXPORT, **change})
    assert "orders" not in broker.vhost.exchange_by_name
    assert "q1" not in broker.vhost.queue_by_name
