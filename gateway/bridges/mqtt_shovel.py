"""The MQTT ends of shovels."""

from collections.abc import Callable
from typing import Any

from gateway.bridges.broker_uri import BrokerUri
from gateway.bridges.link import Lost
from gateway.bridges.mqtt_connection import MqttConnection
from gateway.bridges.mqtt_ends import MqttDestination, MqttSource, TopicMap
from gateway.bridges.parcel import Parcel
from gateway.bridges.shovel_definition import ShovelDefinition
from gateway.bridges.shovel_ends import OpenedDestination, OpenedSource


class MqttShovelEnds:
    """Opens MQTT sources and destinations as a shovel defines them.

    ``topics_of`` returns the conversion of topics and routing keys in a virtual host of this broker.
    """

    def __init__(self, reactor: Any, topics_of: Callable[[str], TopicMap]) -> None:
        self._reactor = reactor
        self._topics_of = topics_of

    async def source(self, definition: ShovelDefinition, uri: BrokerUri, lost: Lost) -> OpenedSource:
        """Open the source: connect and subscribe."""
        connection = self._connection(definition, uri, lost, "src")
        source = MqttSource(connection, self._topics_of(definition.vhost).routing_key)
        await connection.connect()
        filters = definition.value["src-topic"]
        qos = definition.number("src-qos", 1)
        try:
            names = filters if isinstance(filters, list) else [filters]
            await connection.subscribe([(str(name), qos) for name in names])
        except BaseException:
            connection.close()
            raise
        return OpenedSource(source, 0)

    async def destination(self, definition: ShovelDefinition, uri: BrokerUri, lost: Lost) -> OpenedDestination:
        """Open the destination: connect."""
        connection = self._connection(definition, uri, lost, "dest")
        topics, fixed = self._topics_of(definition.vhost), definition.text("dest-topic")
        prefix = definition.text("dest-topic-prefix")

        def topic_of(parcel: Parcel) -> str:
            return prefix + (fixed or topics.topic(parcel.routing_key))

        qos = definition.number("dest-qos", 1)
        retain = definition.value.get("dest-retain") is True
        destination = MqttDestination(connection, topic_of, lambda parcel: qos, retain)
        await connection.connect()
        return destination

    def _connection(self, definition: ShovelDefinition, uri: BrokerUri, lost: Lost, end: str) -> MqttConnection:
        client_id = definition.text(f"{end}-client-id") or f"shovel-{end}-{definition.vhost}-{definition.name}"
        return MqttConnection(uri, client_id, definition.prefetch, self._reactor, lost)
