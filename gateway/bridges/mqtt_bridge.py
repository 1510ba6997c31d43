"""Mosquitto's bridge: one MQTT client that takes topics of another broker, and sends topics of this one."""

from typing import Any, Final

from paho.mqtt.subscribeoptions import SubscribeOptions

from gateway.bridges.amqp_connection import AmqpDialer
from gateway.bridges.amqp_ends import AmqpSource
from gateway.bridges.broker_uri import parse_uri
from gateway.bridges.federated_destination import local_destination
from gateway.bridges.link import Lost
from gateway.bridges.mqtt_bridge_rules import BridgeDefinition, rule_for
from gateway.bridges.mqtt_connection import MqttConnection, MqttRefused
from gateway.bridges.mqtt_ends import MqttDestination, MqttSource, TopicMap, qos_of
from gateway.bridges.parcel import Parcel
from gateway.bridges.transfer import ShovelAckMode, Transfer
from gateway.kernel.clock import Clock

#: The header of messages that came over a bridge, with its name: they do not go back over it.
CAME_OVER: Final = "x-mqtt-bridge"


class BridgeTransfers:
    """The transfers of a bridge, one for each direction that it has, as one."""

    def __init__(self, transfers: list[Transfer]) -> None:
        self._transfers = transfers
        self.remaining: int | None = None

    @property
    def is_blocked(self) -> bool:
        """Whether a destination accepts no messages for now."""
        return any(transfer.is_blocked for transfer in self._transfers)

    @property
    def forwarded(self) -> int:
        """The number of messages that were moved, in both directions."""
        return sum(transfer.forwarded for transfer in self._transfers)

    @property
    def pending(self) -> int:
        """The number of messages that were received and are not moved yet."""
        return sum(transfer.pending for transfer in self._transfers)

    def start(self) -> None:
        """Begin."""
        for transfer in self._transfers:
            transfer.start()

    def close(self) -> None:
        """Close all ends."""
        for transfer in self._transfers:
            transfer.close()


class MqttBridge:
    """Opens the ends of one bridge. ``exchange`` is the one of MQTT clients here; ``uri`` is the address in use."""

    def __init__(
        self,
        definition: BridgeDefinition,
        dialer: AmqpDialer,
        reactor: Any,
        topics: TopicMap,
        exchange: str,
        clock: Clock,
    ) -> None:
        self.definition = definition
        self.uri = definition.uris[0]
        self._dialer = dialer
        self._reactor = reactor
        self._topics = topics
        self._exchange = exchange
        self._clock = clock
        self._attempts = 0

    @property
    def _name(self) -> str:
        return f"MQTT bridge {self.definition.name}"

    async def open(self, lost: Lost) -> BridgeTransfers:
        """Open all ends; each attempt uses the next address. If it raises, no end is left open."""
        definition = self.definition
        self.uri = definition.uris[self._attempts % len(definition.uris)]
        self._attempts += 1
        rules = definition.rules
        comes_in, goes_out = any(rule.comes_in for rule in rules), any(rule.goes_out for rule in rules)
        is_bridge = any(rule.direction == "both" for rule in rules)
        client = MqttConnection(
            self.uri,
            definition.client_id,
            definition.prefetch,
            self._reactor,
            lost,
            is_bridge=is_bridge,
        )
        transfers: list[Transfer] = []
        source = MqttSource(client, self._topics.routing_key)
        try:
            if goes_out:
                transfers.append(await self._outward(client, lost))
            if comes_in:
                transfers.append(await self._inward(source, lost))
            await self._connect(client, is_bridge)
            if comes_in:
                await client.subscribe(
                    [(rule.remote_filter, self._option(rule.qos)) for rule in rules if rule.comes_in]
                )
        except BaseException:
            for transfer in transfers:
                transfer.close()
            client.close()
            raise
        return BridgeTransfers(transfers)

    async def _connect(self, client: MqttConnection, is_bridge: bool) -> None:
        """Connect. :raises MqttRefused: with what may help."""
        try:
            await client.connect()
        except MqttRefused as refusal:
            if not is_bridge or client.is_five:
                raise
            raise MqttRefused(
                f"{refusal}; a topic in both directions needs version=5, or a broker that knows Mosquitto's bridges"
            ) from refusal

    def _option(self, qos: int) -> Any:
        """Return the options of a subscription: with MQTT 5, what this client sends does not come back to it."""
        is_five = self.uri.options.get("version") == "5"
        return SubscribeOptions(qos, noLocal=True) if is_five else qos

    async def _inward(self, source: MqttSource, lost: Lost) -> Transfer:
        mode = ShovelAckMode.ON_CONFIRM
        destination = await local_destination(self._dialer, self._name, self.definition.vhost, mode, lost)
        return Transfer(source, destination, mode, self._addressed_here, self._clock.call_later)

    async def _outward(self, client: MqttConnection, lost: Lost) -> Transfer:
        """Return the transfer from a durable queue, which is bound to the topics that go out."""
        definition = self.definition
        connection = await self._dialer.connect(parse_uri("amqp://", "amqp"), self._name, definition.vhost)
        queue = f"mqtt-bridge.{definition.name}"
        try:
            channel = await connection.open_channel()
            await channel.queue_declare(queue, durable=True)
            for rule in definition.rules:
                if rule.goes_out:
                    await channel.queue_bind(queue, self._exchange, self._topics.binding_key(rule.local_filter))
            await channel.basic_qos(prefetch_count=max(1, min(definition.prefetch, 65_535)))
            source = AmqpSource(connection, channel, lost, queue, False)
        except BaseException:
            connection.leave()
            raise
        destination = MqttDestination(client, self._remote_topic, self._remote_qos, False)
        return Transfer(source, destination, ShovelAckMode.ON_CONFIRM, self._may_go_out, self._clock.call_later)

    def _addressed_here(self, parcel: Parcel) -> bool:
        """Address a message of the other broker to the exchange of MQTT clients."""
        topic = self._topics.topic(parcel.routing_key)
        rule = rule_for(self.definition.rules, topic, is_out=False)
        if rule is None:  # a session of earlier rules may still send it
            return False
        parcel.exchange, parcel.routing_key = self._exchange, self._topics.routing_key(rule.local_topic(topic))
        parcel.properties.headers = {**(parcel.properties.headers or {}), CAME_OVER: self.definition.name}
        return True

    def _may_go_out(self, parcel: Parcel) -> bool:
        """Return whether a message goes to the other broker: it matches a rule, and did not come from there."""
        if (parcel.properties.headers or {}).get(CAME_OVER) == self.definition.name:
            return False
        return rule_for(self.definition.rules, self._topics.topic(parcel.routing_key), is_out=True) is not None

    def _remote_topic(self, parcel: Parcel) -> str:
        topic = self._topics.topic(parcel.routing_key)
        rule = rule_for(self.definition.rules, topic, is_out=True)
        return topic if rule is None else rule.remote_topic(topic)

    def _remote_qos(self, parcel: Parcel) -> int:
        """Return the lower one of the rule's QoS and that of the message."""
        rule = rule_for(self.definition.rules, self._topics.topic(parcel.routing_key), is_out=True)
        return min(qos_of(parcel.properties), 0 if rule is None else rule.qos)
