"""The bridges of a node: starts and stops them, and answers the management API."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gateway.bridges.amqp_connection import AmqpDialer, LocalConnect
from gateway.bridges.amqp_shovel import AmqpShovelEnds
from gateway.bridges.broker_uri import BrokerUri
from gateway.bridges.components import PARAMETER_CHECKS
from gateway.bridges.federation import Federation
from gateway.bridges.mqtt_bridge_rules import COMPONENT as MQTT_BRIDGE
from gateway.bridges.mqtt_bridges import MqttBridges
from gateway.bridges.mqtt_ends import TopicMap
from gateway.bridges.mqtt_shovel import MqttShovelEnds
from gateway.bridges.shovel_definition import AMQP, COMPONENT, MQTT, STOMP, shovel_of
from gateway.bridges.shovel_ends import ShovelEnds
from gateway.bridges.shovels import Shovels
from gateway.bridges.stomp_shovel import StompShovelEnds
from gateway.bridges.upstreams import (
    UPSTREAM,
    upstream_of,
)
from gateway.kernel.broker.broker import Broker
from gateway.kernel.journal.records.topology import ParameterRecord


class BridgeService:
    """Owns the bridges.

    ``connect_local`` connects with this broker itself, ``topics_of`` returns the conversion of MQTT topics in a virtual
    host, ``mqtt_exchange_of`` the exchange of its MQTT clients, ``touch`` schedules the end of a turn.
    """

    def __init__(
        self,
        broker: Broker,
        reactor: Any,  # Any: Twisted's interfaces are not types
        connect_local: LocalConnect,
        topics_of: Callable[[str], TopicMap],
        mqtt_exchange_of: Callable[[str], str],
        touch: Callable[[], None],
    ) -> None:
        dialer = AmqpDialer(reactor, connect_local)
        ends: Mapping[str, ShovelEnds] = {
            AMQP: AmqpShovelEnds(dialer),
            MQTT: MqttShovelEnds(reactor, topics_of),
            STOMP: StompShovelEnds(reactor),
        }
        self._shovels = Shovels(broker, ends, touch)
        self._federation = Federation(broker, dialer)
        self._mqtt_bridges = MqttBridges(broker, dialer, reactor, topics_of, mqtt_exchange_of)
        broker.parameters.components.update(PARAMETER_CHECKS)

    def start(self) -> None:
        """Start what the stored parameters define."""
        self._shovels.start()
        self._federation.start()
        self._mqtt_bridges.start()

    def stop(self) -> None:
        """Close all connections. Messages that are not settled return to their queues."""
        self._shovels.stop()
        self._federation.stop()
        self._mqtt_bridges.stop()

    def local_vhosts(self, record: ParameterRecord) -> Sequence[str]:
        """Return the virtual hosts of this broker that a valid parameter connects to without a user's password."""
        if record.component == MQTT_BRIDGE:
            return [record.vhost]
        uris: Sequence[BrokerUri] = ()
        default = "/"
        if record.component == COMPONENT:
            definition = shovel_of(record)
            uris = (*definition.src_uris, *definition.dest_uris)
        elif record.component == UPSTREAM:
            uris, default = upstream_of(record, {}).uris, record.vhost
        return [default if uri.vhost is None else uri.vhost for uri in uris if uri.is_local and not uri.username]

    def shovel_statuses(self) -> Iterable[Mapping[str, Any]]:
        """Return the status of each shovel and MQTT bridge."""
        return [*self._shovels.statuses(), *self._mqtt_bridges.statuses()]

    def federation_statuses(self) -> Iterable[Mapping[str, Any]]:
        """Return the status of each federation link."""
        return list(self._federation.statuses())

    def restart_federation_link(self, vhost: str, id: str) -> bool:
        """Connect a federation link again; return whether it exists."""
        return self._federation.restart(vhost, id)

    def restart_shovel(self, vhost: str, name: str) -> bool:
        """Connect a shovel again; return whether it exists."""
        return self._shovels.restart(vhost, name)

    def delete_shovel(self, vhost: str, name: str) -> bool:
        """Remove a shovel with its parameter; return whether it exists."""
        return self._shovels.delete(vhost, name)
