"""What a connection counts at its edge, and that nothing of it is lost when it ends."""

from typing import Any

import pytest

from gateway_mqtt.meter import COUNTED, MeterCount
from gateway_mqtt.server import MqttServer
from tests.conformance.mqtt.edge import transport
from tests.protocols.mqtt.dialogue import Gateway
from tests.protocols.mqtt.packets import FOUR, Writer

CONNACK = b"\x20\x02\x00\x00"
SUBACK = b"\x90\x03\x00\x01\x01"


class Edge:
    """One connection with everything between the machine and the socket."""

    def __init__(self, gateway: Gateway, client_id: str = "sensor", write: Writer = FOUR) -> None:
        self._gateway = gateway
        self._transport: Any = transport()
        self.server = MqttServer(gateway.settings, gateway.turn)
        self.server.makeConnection(self._transport)  # type: ignore[no-untyped-call]  # Twisted's
        assert self.say(write.connect(client_id)).startswith(b"\x20")

    def say(self, *packets: bytes) -> bytes:
        """Say these in one write; return what is heard."""
        self._transport.clear()
        self.server.dataReceived(b"".join(packets))
        self._gateway.settle()
        heard: bytes = self._transport.value()
        return heard

    def lose(self) -> None:
        self.server.connectionLost()


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


def total(gateway: Gateway) -> MeterCount:
    return gateway.settings.meter.total()


def test_bytes_are_those_on_the_wire(gateway: Gateway) -> None:
    Edge(gateway)
    assert total(gateway).bytes_received == len(FOUR.connect("sensor"))
    assert total(gateway).bytes_sent == len(CONNACK)


def test_packets_of_all_kinds_count_each_way(gateway: Gateway) -> None:
    edge = Edge(gateway)
    edge.say(FOUR.subscribe(("t", 1)), FOUR.pingreq())
    assert (total(gateway).packets_received, total(gateway).packets_sent) == (3, 3)


def test_a_publish_counts_with_its_payload_when_it_comes_and_when_it_goes(gateway: Gateway) -> None:
    edge = Edge(gateway)
    edge.say(FOUR.subscribe(("t", 1)))
    edge.say(FOUR.publish("t", b"12345", qos=1, id=7), FOUR.publish("t", b"678"))
    counted = total(gateway)
    assert (counted.publishes_received, counted.payload_received) == (2, 8)
    assert (counted.publishes_sent, counted.payload_sent) == (2, 8)
    # CONNACK, SUBACK and PUBACK are the others
    assert (counted.packets_received, counted.packets_sent) == (4, 5)


def test_answers_that_leave_together_count_one_by_one(gateway: Gateway) -> None:
    edge = Edge(gateway, write=FOUR)
    keeper = gateway.client("keeper", expiry=60)
    keeper.subscribe("t", 1)
    edge.say(*(FOUR.publish("t", qos=1, id=id) for id in range(1, 6)))
    assert total(gateway).packets_sent == 1 + 5


def test_a_packet_cut_in_two_is_one(gateway: Gateway) -> None:
    edge = Edge(gateway)
    packet = FOUR.publish("t", b"hello")
    edge.say(packet[:4])
    assert total(gateway).packets_received == 1
    edge.say(packet[4:])
    assert total(gateway).packets_received == 2


def test_what_a_client_counted_stays_when_it_leaves_and_counts_once(gateway: Gateway) -> None:
    edge = Edge(gateway)
    edge.say(FOUR.publish("t", b"12345"))
    before = total(gateway)
    edge.lose()
    edge.lose()
    after = total(gateway)
    assert [getattr(after, name) for name in COUNTED] == [getattr(before, name) for name in COUNTED]
    assert after.payload_received == 5


def test_sockets_count_when_they_open_and_connects_when_they_come(gateway: Gateway) -> None:
    silent = MqttServer(gateway.settings, gateway.turn)
    silent.makeConnection(transport())  # type: ignore[no-untyped-call]  # Twisted's
    Edge(gateway)
    assert (gateway.settings.meter.sockets, gateway.settings.meter.connects) == (2, 1)
