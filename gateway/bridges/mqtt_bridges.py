"""The MQTT bridges of the node: one for each parameter of the component ``mqtt-bridge``, and their status."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from gateway.bridges.amqp_connection import AmqpDialer
from gateway.bridges.component_parameters import BridgeKey, ComponentParameters
from gateway.bridges.link import Link, LinkState
from gateway.bridges.mqtt_bridge import MqttBridge
from gateway.bridges.mqtt_bridge_rules import COMPONENT, bridge_of
from gateway.bridges.mqtt_ends import TopicMap
from gateway.kernel.broker.broker import Broker
from gateway.kernel.events import Event
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.logs import StructuredLog

_log: Final = StructuredLog("bridges")


#: The event of a virtual host whose topics are mapped by other rules.
TOPICS_CHANGED: Final = "mqtt.topics_changed"


class MqttBridges:
    """Owns the bridges. They run from ``start`` to ``stop`` and follow their parameters.

    ``topics_of`` and ``exchange_of`` return the rules of the topics of a virtual host; a bridge starts again when they
    change.
    """

    def __init__(
        self,
        broker: Broker,
        dialer: AmqpDialer,
        reactor: Any,  # Any: Twisted's interfaces are not types
        topics_of: Callable[[str], TopicMap],
        exchange_of: Callable[[str], str],
    ) -> None:
        self._broker = broker
        self._dialer = dialer
        self._reactor = reactor
        self._topics_of = topics_of
        self._exchange_of = exchange_of
        self._bridges: dict[BridgeKey, tuple[MqttBridge, Link]] = {}
        self._parameters = ComponentParameters(broker, COMPONENT, self._start, self._stop)
        broker.events.subscribe(self._topics_changed, "mqtt")

    def start(self) -> None:
        """Start the bridges of the stored parameters."""
        self._parameters.start()

    def stop(self) -> None:
        """Stop all bridges."""
        self._parameters.stop()
        for key in list(self._bridges):
            self._stop(key)

    def statuses(self) -> Iterator[Mapping[str, Any]]:
        """Yield the status of each bridge, in the form of a shovel's."""
        for (vhost, name), (bridge, link) in sorted(self._bridges.items()):
            status: dict[str, Any] = {
                "node": self._broker.node,
                "timestamp": link.since,
                "name": name,
                "vhost": vhost,
                "type": COMPONENT,
                "state": link.state.value,
                "address": bridge.uri.shown,
            }
            if link.state is LinkState.TERMINATED:
                status["reason"] = link.reason
            if (transfer := link.transfer) is not None:
                status |= {"forwarded": transfer.forwarded, "pending": transfer.pending}
            yield status

    def _topics_changed(self, event: Event) -> None:
        if event.name == TOPICS_CHANGED:
            for vhost, name in [key for key in self._bridges if key[0] == event.vhost]:
                self._start(self._broker.parameters[vhost, COMPONENT, name])

    def _start(self, record: ParameterRecord) -> None:
        key = (record.vhost, record.name)
        self._stop(key)
        definition, clock = bridge_of(record), self._broker.clock
        topics, exchange = self._topics_of(record.vhost), self._exchange_of(record.vhost)
        bridge = MqttBridge(definition, self._dialer, self._reactor, topics, exchange, clock)
        delay_s = definition.reconnect_delay_s
        link = Link(record.name, bridge.open, delay_s, clock, _log, kind=COMPONENT, vhost=record.vhost)
        self._bridges[key] = (bridge, link)
        link.start()

    def _stop(self, key: BridgeKey) -> None:
        found = self._bridges.pop(key, None)
        if found is not None:
            found[1].stop()
