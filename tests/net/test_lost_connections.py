"""A connection that is lost while a listing or a timer uses it returns default values and raises nothing."""

from typing import Any

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure

from gateway.net.peer import PeerProtocol
from gateway_amqp.server import AmqpServer
from gateway_mqtt.server import MqttServer
from gateway_stomp.server import StompServer
from tests.net.far_end import FarEnd
from tests.protocols.amqp.dialogue import Gateway as AmqpGateway
from tests.protocols.mqtt.dialogue import Gateway as MqttGateway
from tests.protocols.stomp.dialogue import Gateway as StompGateway

SERVERS = [
    pytest.param(AmqpServer, AmqpGateway, id="AMQP"),
    pytest.param(MqttServer, MqttGateway, id="MQTT"),
    pytest.param(StompServer, StompGateway, id="STOMP"),
]


@pytest.mark.parametrize(("server", "gateway"), SERVERS)
def test_a_lost_connection_may_still_be_listed_and_ticked(server: Any, gateway: Any) -> None:
    harness = gateway()
    peer: PeerProtocol = server(harness.settings, harness.turn)
    far_end = FarEnd(peerAddress=IPv4Address("TCP", "127.0.0.1", 50_000))
    peer.makeConnection(far_end)
    far_end.producer = None  # a real transport drops it
    met = iter(harness.broker.connections)
    peer.connectionLost(Failure(ConnectionDone()))
    assert list(met) == []
    far_end.getPeer = far_end.getHost = None  # type: ignore[assignment,method-assign]  # as one without its socket
    assert (list(peer.channels()), peer.channel_count, peer.user_name, peer.vhost_name) == ([], 0, "", "")
    assert peer.info().peer_port == 50_000
    peer.tick()
    peer.update_flow_control()
    assert peer not in harness.broker.connections
