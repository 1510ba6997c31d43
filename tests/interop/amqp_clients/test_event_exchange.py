"""The event exchange over the wire: who did what, in all protocols."""

from collections.abc import Iterator
from typing import Any

import paho.mqtt.client as mqtt
import pika
import pytest
import stomp
from pika.adapters.blocking_connection import BlockingChannel

from tests.interop.amqp_clients.pika_client import parameters
from tests.interop.gateways import gateway_at
from tests.management_client import put, request
from tests.paho_loop import stop_loop
from tests.running import Gateway
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    directory = tmp_path_factory.mktemp("events")
    config = directory / "gateway.toml"
    config.write_text('[vhosts."/".plugins]\nevent-exchange = {}\n')
    running = gateway_at(directory)
    running.options = ("--config", str(config))
    running.start()
    try:
        yield running
    finally:
        running.end()


@pytest.fixture
def events(gateway: Gateway) -> Iterator[BlockingChannel]:
    """Return a channel with a queue ``events`` that gets all of them."""
    with pika.BlockingConnection(parameters(gateway.broker)) as connection:
        channel = connection.channel()
        channel.queue_declare("events", exclusive=True)
        channel.queue_bind("events", "amq.rabbitmq.event", "#")
        channel.queue_purge("events")
        yield channel


def wait_for_event(channel: BlockingChannel, key: str, **wanted: Any) -> dict[str, Any]:
    """Wait for an event with these headers; return all its headers."""

    def found() -> dict[str, Any]:
        while True:
            method, properties, _ = channel.basic_get("events", auto_ack=True)
            if method is None:
                return {}
            if method.routing_key == key and wanted.items() <= properties.headers.items():
                return dict(properties.headers)

    return wait_until(found, lambda: f"there is no event {key} with {wanted}")


def test_a_change_over_http_names_its_user(gateway: Gateway, events: BlockingChannel) -> None:
    put(gateway, "users/ada", {"password": "x", "tags": "administrator"})
    put(gateway, "permissions/%2F/ada", {"configure": ".*", "write": ".*", "read": ".*"})
    request(gateway, "PUT", "queues/%2F/by-ada", {}, login="ada:x")
    assert wait_for_event(events, "queue.created", name="by-ada")["user_who_performed_action"] == "ada"
    definitions = {"queues": [{"name": "imported", "vhost": "/", "durable": True, "auto_delete": False}]}
    request(gateway, "POST", "definitions", definitions, login="ada:x")
    assert wait_for_event(events, "queue.created", name="imported")["user_who_performed_action"] == "ada"


def test_changes_of_clients_name_their_users(gateway: Gateway, events: BlockingChannel) -> None:
    def user_of(key: str, **wanted: Any) -> Any:
        return wait_for_event(events, key, **wanted)["user_who_performed_action"]

    events.connection.channel().exchange_declare("by-amqp", auto_delete=True)
    assert user_of("exchange.created", name="by-amqp") == "guest"
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "sub")
    client.username_pw_set("guest", "guest")
    client.connect("127.0.0.1", gateway.addresses["mqtt"][1])
    client.loop_start()
    wait_until(client.is_connected)
    client.subscribe("a", 1)
    assert user_of("binding.created", routing_key="a") == "guest"
    client.disconnect()
    stop_loop(client)
    assert user_of("queue.deleted", name="mqtt-subscription-subqos1") == "guest"
    host = [("127.0.0.1", gateway.addresses["stomp"][1])]
    connection = stomp.Connection12(host, vhost="/")
    connection.connect("guest", "guest", wait=True)
    connection.subscribe("/queue/by-stomp", "1")
    assert user_of("consumer.created", queue="by-stomp") == "guest"
    connection.disconnect()


def test_what_the_broker_does_itself_names_rabbitmqs_internal_user(gateway: Gateway, events: BlockingChannel) -> None:
    events.queue_declare("short", arguments={"x-expires": 100})
    assert wait_for_event(events, "queue.created", name="short")["user_who_performed_action"] == "guest"
    assert wait_for_event(events, "queue.deleted", name="short")["user_who_performed_action"] == "rmq-internal"


def test_a_shovel_reports_its_status(gateway: Gateway, events: BlockingChannel) -> None:
    value = {"src-uri": "amqp://", "src-queue": "from", "dest-uri": "amqp://", "dest-queue": "to"}
    put(gateway, "parameters/shovel/%2F/move", {"value": value})
    status = wait_for_event(events, "shovel.worker.status", name="move", status="running")
    assert (status["src_queue"], status["dest_queue"], status["vhost"]) == ("from", "to", "/")
    request(gateway, "DELETE", "parameters/shovel/%2F/move")
    assert wait_for_event(events, "shovel.worker.removed")["name"] == "move"


def test_a_federation_link_reports_its_status(gateway: Gateway, events: BlockingChannel) -> None:
    put(gateway, "parameters/federation-upstream/%2F/nowhere", {"value": {"uri": "amqp://127.0.0.1:1"}})
    events.exchange_declare("federated", "topic")
    policy = {"pattern": "^federated$", "definition": {"federation-upstream": "nowhere"}, "apply-to": "exchanges"}
    put(gateway, "policies/%2F/federated", policy)
    status = wait_for_event(events, "federation.link.status", status="error")
    assert (status["exchange"], status["upstream"], bool(status["error"])) == ("federated", "nowhere", True)
    request(gateway, "DELETE", "policies/%2F/federated")
    assert wait_for_event(events, "federation.link.removed")["exchange"] == "federated"
