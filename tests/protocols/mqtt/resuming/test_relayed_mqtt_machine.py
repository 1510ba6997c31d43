"""Delivery guarantees of MQTT for clients of a node whose leader crashes at any time: they stay connected.

The laws are those of ``test_mqtt_machine``: QoS 2 exactly once, QoS 1 at least once, in order, nothing unexpected.
"""

from hypothesis import HealthCheck, settings

from tests.effort import examples
from tests.protocols.mqtt.resuming.relayed_world import RelayedWorld
from tests.protocols.mqtt.test_mqtt_machine import MachineWorld, MqttMachine


class RelayedMqttMachine(MqttMachine):
    """Random clients, brokers that crash, and the node between them."""

    def new_world(self) -> MachineWorld:
        return RelayedWorld()


TestRelayedMqttMachine = RelayedMqttMachine.TestCase
TestRelayedMqttMachine.settings = settings(
    max_examples=examples(100),
    stateful_step_count=40,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow],
)
