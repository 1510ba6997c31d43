"""Bridges between a gateway and Debian's RabbitMQ, both as child processes."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.bridges.far_broker import bodies_in, length_of, put_shovel, shovel_status, uri_of, wait_for_state
from tests.interop.amqp_clients.pika_client import parameters
from tests.interop.amqp_clients.rabbitmq_bridges import (
    EXCHANGES,
    POLICIES,
    SHOVELS,
    UPSTREAMS,
    define_bridges,
    define_upstream_set,
)
from tests.interop.gateways import gateway_in
from tests.interop.rabbitmq_server import RabbitServer, running_rabbitmq
from tests.management_client import get, put, request
from tests.running import Gateway
from tests.waiting import wait_until

_PERSISTENT = pika.BasicProperties(delivery_mode=2)


@pytest.fixture(scope="module")
def rabbit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RabbitServer]:
    with running_rabbitmq(tmp_path_factory.mktemp("rabbit")) as server:
        yield server


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with gateway_in(tmp_path_factory.mktemp("near"), "node_name=near") as running:
        yield running


@pytest.fixture
def here(gateway: Gateway) -> Iterator[BlockingChannel]:
    """Return a channel to the gateway, in confirm mode."""
    with pika.BlockingConnection(parameters(gateway.broker)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        yield channel


@pytest.fixture
def there(rabbit: RabbitServer) -> Iterator[BlockingChannel]:
    """Return a channel to RabbitMQ, in confirm mode."""
    with pika.BlockingConnection(pika.URLParameters(rabbit.uri)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        yield channel


def _wait_for_link(links: Callable[[], Any]) -> Mapping[str, Any]:
    """Wait until the only federation link runs; return it."""

    def found() -> Mapping[str, Any]:
        (link,) = links() or [{}]
        return link if link.get("status") == "running" else {}

    return wait_until(found, lambda: str(links()), timeout_s=30)


@pytest.mark.timeout(150)  # the first test starts RabbitMQ
@pytest.mark.parametrize("ack_mode", ["on-confirm", "on-publish", "no-ack"])
@pytest.mark.parametrize("is_outward", [True, False])
def test_a_shovel_moves_messages_in_order(
    gateway: Gateway,
    rabbit: RabbitServer,
    here: BlockingChannel,
    there: BlockingChannel,
    name: str,
    ack_mode: str,
    is_outward: bool,
) -> None:
    uris = ["amqp://", rabbit.uri] if is_outward else [rabbit.uri, "amqp://"]
    source, destination = (here, there) if is_outward else (there, here)
    source.queue_declare(name, durable=True)
    for number in range(50):
        properties = pika.BasicProperties(delivery_mode=2, headers={"n": number, "own": "kept"})
        source.basic_publish("", name, b"%d" % number, properties)
    put_shovel(
        gateway, name, src_uri=uris[0], src_queue=name, dest_uri=uris[1], dest_queue=f"{name}.to", ack_mode=ack_mode
    )
    wait_for_state(gateway, name, "running")
    wait_until(lambda: shovel_status(gateway, name)["forwarded"] == 50, gateway.log)
    wait_until(lambda: length_of(destination, f"{name}.to") == 50)
    _, properties, _ = destination.basic_get(f"{name}.to")
    assert properties.headers == {"n": 0, "own": "kept"}
    destination.basic_recover(requeue=True)
    assert bodies_in(destination, f"{name}.to", 50) == [b"%d" % number for number in range(50)]
    wait_until(lambda: length_of(source, name) == 0)
    request(gateway, "DELETE", f"parameters/shovel/%2F/{name}")


def test_rabbitmqs_own_shovel_takes_from_the_gateway(
    gateway: Gateway, rabbit: RabbitServer, here: BlockingChannel, there: BlockingChannel, name: str
) -> None:
    here.queue_declare(name, durable=True)
    here.basic_publish("", name, b"taken", _PERSISTENT)
    keys = {"src-uri": uri_of(gateway), "src-queue": name, "dest-uri": "amqp://", "dest-queue": name}
    rabbit.request("PUT", f"parameters/shovel/%2F/{name}", {"value": {**keys, "src-protocol": "amqp091"}})
    there.queue_declare(name, durable=True)
    assert bodies_in(there, name, 1) == [b"taken"]
    wait_until(lambda: length_of(here, name) == 0)
    rabbit.request("DELETE", f"parameters/shovel/%2F/{name}")


def test_exchanges_and_queues_get_messages_from_rabbitmq(
    gateway: Gateway, rabbit: RabbitServer, here: BlockingChannel, there: BlockingChannel, name: str
) -> None:
    put(gateway, "parameters/federation-upstream/%2F/rabbit", {"value": {"uri": rabbit.uri}})
    policy = {"pattern": f"^{name}", "definition": {"federation-upstream": "rabbit"}, "apply-to": "exchanges"}
    here.exchange_declare(name, "topic", durable=True)
    here.queue_declare(f"{name}.bound")
    here.queue_bind(f"{name}.bound", name, "a.#")
    put(gateway, f"policies/%2F/{name}", policy)
    link = _wait_for_link(lambda: get(gateway, "federation-links"))
    assert (link["exchange"], link["upstream"], link["type"]) == (name, "rabbit", "exchange")
    there.basic_publish(name, "b", b"not bound")
    there.basic_publish(name, "a.b", b"bound")
    _, properties, body = wait_until(
        lambda: got if (got := here.basic_get(f"{name}.bound", auto_ack=True))[0] else None
    )
    assert (body, properties.headers["x-received-from"][0]["cluster-name"]) == (b"bound", "rabbit-far")
    request(gateway, "DELETE", f"policies/%2F/{name}")
    wait_until(lambda: not get(gateway, "federation-links"))
    put(gateway, f"policies/%2F/{name}", {**policy, "apply-to": "queues"})
    there.queue_declare(f"{name}.bound", durable=False)
    there.basic_publish("", f"{name}.bound", b"from the queue")
    _wait_for_link(lambda: get(gateway, "federation-links"))
    _, _, body = next(here.consume(f"{name}.bound", auto_ack=True, inactivity_timeout=20))
    assert body == b"from the queue"
    here.cancel()
    request(gateway, "DELETE", f"policies/%2F/{name}")
    request(gateway, "DELETE", "parameters/federation-upstream/%2F/rabbit")


def test_exchanges_and_queues_of_rabbitmq_get_messages_from_the_gateway(
    gateway: Gateway, rabbit: RabbitServer, here: BlockingChannel, there: BlockingChannel, name: str
) -> None:
    rabbit.request("PUT", "parameters/federation-upstream/%2F/gateway", {"value": {"uri": uri_of(gateway)}})
    policy = {"pattern": f"^{name}", "definition": {"federation-upstream": "gateway"}, "apply-to": "exchanges"}
    there.exchange_declare(name, "topic", durable=True)
    there.queue_declare(f"{name}.bound")
    there.queue_bind(f"{name}.bound", name, "a.#")
    rabbit.request("PUT", f"policies/%2F/{name}", policy)
    _wait_for_link(lambda: rabbit.request("GET", "federation-links"))
    wait_until(lambda: get(gateway, f"exchanges/%2F/{name}/bindings/source"))
    here.basic_publish(name, "b", b"not bound")
    here.basic_publish(name, "a.b", b"bound")
    _, properties, body = wait_until(
        lambda: got if (got := there.basic_get(f"{name}.bound", auto_ack=True))[0] else None
    )
    assert (body, properties.headers["x-received-from"][0]["exchange"]) == (b"bound", name)
    rabbit.request("DELETE", f"policies/%2F/{name}")
    wait_until(lambda: not rabbit.request("GET", "federation-links"))
    rabbit.request("PUT", f"policies/%2F/{name}", {**policy, "apply-to": "queues"})
    here.queue_declare(f"{name}.bound", durable=False)
    here.basic_publish("", f"{name}.bound", b"from the queue")
    _, _, body = next(there.consume(f"{name}.bound", auto_ack=True, inactivity_timeout=20))
    assert body == b"from the queue"
    there.cancel()
    rabbit.request("DELETE", f"policies/%2F/{name}")
    rabbit.request("DELETE", "parameters/federation-upstream/%2F/gateway")


def test_an_export_is_applied_whole(gateway: Gateway, rabbit: RabbitServer) -> None:
    define_bridges(rabbit)
    exports = [rabbit.exported_definitions()]
    define_upstream_set(rabbit)
    exports.append(rabbit.request("GET", "definitions"))
    for export, sets in zip(exports, (0, 1), strict=True):
        request(gateway, "POST", "definitions", export)
        stored = {(each["component"], each["name"]): each["value"] for each in get(gateway, "parameters")}
        assert {name: stored["shovel", name] for name in SHOVELS} == SHOVELS
        assert {name: stored["federation-upstream", name] for name in UPSTREAMS} == UPSTREAMS
        assert len(stored) == len(SHOVELS) + len(UPSTREAMS) + sets
        assert {each["name"] for each in get(gateway, "policies/shop")} == set(POLICIES)
        exchanges = {each["name"]: (each["type"], each["arguments"]) for each in get(gateway, "exchanges/shop")}
        assert {name: exchanges[name] for name in EXCHANGES} == EXCHANGES
        weights = {each["destination"]: each["routing_key"] for each in get(gateway, "bindings/shop/e/hashed/q/part-3")}
        assert weights == {"part-3": "4"}
        links = {(each["type"], each["upstream"]) for each in get(gateway, "federation-links/shop")}
        assert links == {("exchange", "berlin"), ("exchange", "rome"), ("queue", "rome")}
        request(gateway, "DELETE", "vhosts/shop")
