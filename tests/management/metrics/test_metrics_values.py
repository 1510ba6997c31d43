"""The metrics count what happened: messages of all protocols, connections that closed, drops and dead letters."""

import pytest

from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from tests.behaviour.mqtt_client import MqttClient
from tests.behaviour.scenario import AmqpClient, ProtocolClient, Scenario
from tests.behaviour.stomp_client import StompClient
from tests.management.metrics.scraper import Scraper

CLIENTS = [
    pytest.param(AmqpClient, "amqp091", id="AMQP"),
    pytest.param(MqttClient, "mqtt50", id="MQTT"),
    pytest.param(StompClient, "STOMP 1.2", id="STOMP"),
]
RECEIVED = "rabbitmq_global_messages_received_total"
DELIVERED = "rabbitmq_global_messages_delivered"


@pytest.mark.parametrize(("client", "protocol"), CLIENTS)
def test_publishes_are_counted_by_protocol_with_their_sizes_and_confirms(
    client: type[ProtocolClient], protocol: str
) -> None:
    scenario = Scenario(client)
    scraper = Scraper(scenario.gateway)
    scenario.queue("q")
    scenario.publish(b"m" * 100, b"m" * 101)
    scraped = scraper.scrape()
    assert scraped.one(RECEIVED, protocol=protocol) == 2
    assert scraped.one("rabbitmq_global_messages_received_confirm_total", protocol=protocol) == 2
    assert scraped.one("rabbitmq_global_messages_confirmed_total", protocol=protocol) == 2
    assert scraped.one("rabbitmq_global_messages_routed_total", protocol=protocol) == 2
    assert scraped.one("rabbitmq_message_size_bytes_bucket", protocol=protocol, le="100.0") == 1
    assert scraped.one("rabbitmq_message_size_bytes_bucket", protocol=protocol, le="1000.0") == 2
    assert scraped.one("rabbitmq_message_size_bytes_sum", protocol=protocol) == 201
    assert scraped.one("rabbitmq_global_publishers", protocol=protocol) == 1
    assert scraped.sum(RECEIVED) == 2


@pytest.mark.parametrize(("client", "protocol"), CLIENTS)
def test_a_closed_connection_stays_counted(client: type[ProtocolClient], protocol: str) -> None:
    scenario = Scenario(client)
    scraper = Scraper(scenario.gateway)
    scenario.queue("q")
    scenario.publish(b"a", b"b")
    assert len(scenario.drain()) == 2
    scenario.client.leave()
    first, second = scraper.scrape(), scraper.scrape()
    for scraped in (first, second):
        assert scraped.one(RECEIVED, protocol=protocol) == 2
        assert scraped.one("rabbitmq_global_messages_received_confirm_total", protocol=protocol) == 2
        assert scraped.sum(f"{DELIVERED}_total") == 2
        assert scraped.sum("rabbitmq_global_messages_acknowledged_total") == 2
        assert scraped.one("rabbitmq_global_publishers", protocol=protocol) == 0


def test_a_message_counts_as_routed_once_for_each_queue_and_not_without_one() -> None:
    scenario = Scenario()
    for name in ("a", "b", "c"):
        scenario.queue(name)
    scenario.exchange("f", "fanout", "a", "b", "c")
    scenario.publish(b"m", exchange="f", to="")
    scenario.publish(b"m", to="nowhere")
    scraped = Scraper(scenario.gateway).scrape()
    assert scraped.one("rabbitmq_global_messages_routed_total", protocol="amqp091") == 3
    assert scraped.one("rabbitmq_global_messages_unroutable_dropped_total", protocol="amqp091") == 1
    assert scraped.one("gateway_dropped_messages_total", reason="unroutable", protocol="amqp091") == 1


def test_deliveries_are_counted_by_queue_type_and_way() -> None:
    scenario = Scenario()
    scenario.queue("q")
    scenario.queue("r", {"x-queue-type": "quorum"})
    for name in ("q", "r"):
        scenario.publish(b"m", to=name)
        scenario.requeue(name)
        scenario.drain(name)
    scraped = Scraper(scenario.gateway).scrape()
    for kind in ("classic", "quorum"):
        labels = {"protocol": "amqp091", "queue_type": f"rabbit_{kind}_queue"}
        assert scraped.one(f"{DELIVERED}_get_manual_ack_total", **labels) == 2
        assert scraped.one(f"{DELIVERED}_total", **labels) == 2
        assert scraped.one("rabbitmq_global_messages_redelivered_total", **labels) == 1
        assert scraped.one("rabbitmq_global_messages_acknowledged_total", **labels) == 1
        assert scraped.one("rabbitmq_global_messages_get_empty_total", **labels) == 1


def test_mqtt_deliveries_are_counted_by_quality_of_service() -> None:
    scenario = Scenario()
    subscriber = scenario.gateway.client("subscriber")
    subscriber.subscribe("t/#", 1)
    publisher = scenario.gateway.client("publisher")
    publisher.publish("t/a", b"m", qos=1, id=1)
    (packet,) = subscriber.receive()
    subscriber.puback(1)
    scraped = Scraper(scenario.gateway).scrape()
    labels = {"protocol": "mqtt50", "queue_type": "rabbit_classic_queue"}
    assert "t/a" in str(packet)
    assert scraped.one(f"{DELIVERED}_consume_manual_ack_total", **labels) == 1
    assert scraped.one("rabbitmq_global_messages_acknowledged_total", **labels) == 1
    assert scraped.one("gateway_mqtt_sessions", vhost="/", state="connected") == 2
    assert scraped.one("rabbitmq_global_consumers", protocol="mqtt50") >= 1


def test_dead_letters_are_counted_by_reason_and_strategy() -> None:
    scenario = Scenario()
    scenario.queue("dead")
    scenario.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-max-length": 1})
    scenario.queue("plain", {"x-max-length": 1})
    scenario.publish(b"a", b"b")
    scenario.publish(b"a", b"b", b"c", to="plain")
    scenario.reject()
    scraped = Scraper(scenario.gateway).scrape()
    total = "rabbitmq_global_messages_dead_lettered_{}_total".format
    assert scraped.one(total("maxlen"), dead_letter_strategy="at_most_once", queue_type="rabbit_classic_queue") == 1
    assert scraped.one(total("rejected"), dead_letter_strategy="at_most_once", queue_type="rabbit_classic_queue") == 1
    assert scraped.one(total("maxlen"), dead_letter_strategy="disabled", queue_type="rabbit_classic_queue") == 2
    assert scraped.one("gateway_dropped_messages_total", reason="maxlen") == 3


def test_counters_of_a_deleted_queue_and_virtual_host_stay() -> None:
    scenario = Scenario()
    scraper = Scraper(scenario.gateway)
    broker = scenario.gateway.broker
    other = broker.declare_vhost("other")
    queue = other.declare_queue("q", arguments={"x-max-length": 1})
    other.publish(other.default_exchange, _message("q"))
    other.publish(other.default_exchange, _message("q"))
    labels = {"dead_letter_strategy": "disabled", "queue_type": "rabbit_classic_queue"}
    name = "rabbitmq_global_messages_dead_lettered_maxlen_total"
    assert scraper.scrape().one(name, **labels) == 1
    other.delete_queue(queue)
    assert scraper.scrape().one(name, **labels) == 1
    broker.delete_vhost("other")
    scenario.advance(100)
    assert scraper.scrape().one(name, **labels) == 1


def test_gauges_follow_queues_and_channels() -> None:
    scenario = Scenario()
    scenario.queue("q")
    scenario.publish(b"a", b"b", b"c")
    scenario.get()
    scraped = Scraper(scenario.gateway).scrape()
    assert scraped.one("rabbitmq_queue_messages_ready") == 2
    assert scraped.one("rabbitmq_queue_messages_unacked") == 1
    assert scraped.one("rabbitmq_queues") == 1
    assert scraped.one("rabbitmq_queue_messages_ready_bytes") == 2
    assert scraped.one("rabbitmq_channel_messages_unacked") == 1
    assert scraped.one("gateway_queue_messages", queue_type="classic", state="ready") == 2


def _message(key: str) -> Message:
    return Message("", key, native_header(Properties()), b"m")
