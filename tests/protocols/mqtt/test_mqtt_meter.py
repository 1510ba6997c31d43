"""Traffic counters of connections; the counts of a closed connection are kept."""

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
        assert self.send(write.connect(client_id)).startswith(b"\x20")

    def send(self, *packets: bytes) -> bytes:
        """Send these in one write; return what is received."""
        self._transport.clear()
        self.server.dataReceived(b"".join(packets))
        self._gateway.settle()
        answers: bytes = self._transport.value()
        return answers

    def lose(self) -> None:
        self.server.connectionLost()

    def rest(self) -> None:
        """Let the connection tick until it rests."""
        ticking = self._gateway.broker.connections.ticking
        for _ in range(5):
            if not self.server.wakes_at and (ticks := self.server.tick()):
                ticking.rest(self.server, ticks)
        assert self.server.wakes_at


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()


def total(gateway: Gateway) -> MeterCount:
    return gateway.settings.meter.total()


def test_counted_bytes_are_those_on_the_wire(gateway: Gateway) -> None:
    Edge(gateway)
    assert total(gateway).bytes_received == len(FOUR.connect("sensor"))
    assert total(gateway).bytes_sent == len(CONNACK)


def test_packets_of_all_types_are_counted_in_both_directions(gateway: Gateway) -> None:
    edge = Edge(gateway)
    edge.send(FOUR.subscribe(("t", 1)), FOUR.pingreq())
    assert (total(gateway).packets_received, total(gateway).packets_sent) == (3, 3)


def test_a_publish_and_its_payload_are_counted_on_receipt_and_on_delivery(gateway: Gateway) -> None:
    edge = Edge(gateway)
    edge.send(FOUR.subscribe(("t", 1)))
    edge.send(FOUR.publish("t", b"12345", qos=1, id=7), FOUR.publish("t", b"678"))
    counted = total(gateway)
    assert (counted.publishes_received, counted.payload_received) == (2, 8)
    assert (counted.publishes_sent, counted.payload_sent) == (2, 8)
    # CONNACK, SUBACK and PUBACK are the others
    assert (counted.packets_received, counted.packets_sent) == (4, 5)


def test_answers_in_one_write_are_counted_one_by_one(gateway: Gateway) -> None:
    edge = Edge(gateway, write=FOUR)
    keeper = gateway.client("keeper", expiry=60)
    keeper.subscribe("t", 1)
    edge.send(*(FOUR.publish("t", qos=1, id=id) for id in range(1, 6)))
    assert total(gateway).packets_sent == 1 + 5


def test_a_packet_in_two_pieces_is_counted_once(gateway: Gateway) -> None:
    edge = Edge(gateway)
    packet = FOUR.publish("t", b"hello")
    edge.send(packet[:4])
    assert total(gateway).packets_received == 1
    edge.send(packet[4:])
    assert total(gateway).packets_received == 2


def test_the_counts_of_a_closed_connection_are_kept_once(gateway: Gateway) -> None:
    edge = Edge(gateway)
    edge.send(FOUR.publish("t", b"12345"))
    before = total(gateway)
    edge.lose()
    edge.lose()
    after = total(gateway)
    assert [getattr(after, name) for name in COUNTED] == [getattr(before, name) for name in COUNTED]
    assert after.payload_received == 5


def counts(gateway: Gateway) -> list[int]:
    return [getattr(total(gateway), name) for name in COUNTED]


class Watched:
    """Counts how often the connections were asked for their counts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked = 0
        count = MqttServer.count

        def counting(server: MqttServer, tally: MeterCount) -> None:
            self.asked += 1
            count(server, tally)

        monkeypatch.setattr(MqttServer, "count", counting)


def test_connections_that_rest_are_counted_without_asking_them(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(monkeypatch)
    edge = Edge(gateway)
    edge.send(FOUR.subscribe(("t", 1)), FOUR.publish("t", b"12345", qos=1, id=7))
    before = counts(gateway)
    edge.rest()
    watched.asked = 0
    assert counts(gateway) == before
    assert watched.asked == 0


def test_a_connection_that_rested_is_counted_on(gateway: Gateway) -> None:
    edge = Edge(gateway)
    edge.send(FOUR.subscribe(("t", 1)))
    edge.rest()
    for _ in range(3):
        before = total(gateway)
        edge.send(FOUR.publish("t", b"12345", qos=1, id=7))
        assert total(gateway).payload_received == before.payload_received + 5
        assert total(gateway).payload_sent == before.payload_sent + 5
        assert total(gateway).packets_received == before.packets_received + 1
        edge.rest()
        assert total(gateway).payload_sent == before.payload_sent + 5


def test_a_connection_that_only_woke_to_tick_is_not_counted_again(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    edge = Edge(gateway)
    edge.rest()
    before = counts(gateway)
    watched = Watched(monkeypatch)
    edge.server.wake()
    edge.rest()
    assert watched.asked == 0
    assert counts(gateway) == before


def test_the_counts_of_a_connection_that_closes_while_it_rests_are_kept_once(gateway: Gateway) -> None:
    edge = Edge(gateway)
    edge.send(FOUR.publish("t", b"12345"))
    edge.rest()
    before = counts(gateway)
    edge.lose()
    edge.lose()
    assert counts(gateway) == before


def test_sockets_are_counted_when_opened_and_connects_when_received(gateway: Gateway) -> None:
    silent = MqttServer(gateway.settings, gateway.turn)
    silent.makeConnection(transport())  # type: ignore[no-untyped-call]  # Twisted's
    Edge(gateway)
    assert (gateway.settings.meter.sockets, gateway.settings.meter.connects) == (2, 1)


def test_shared_counts_are_equal_and_one_object() -> None:
    counts, equal, other = MeterCount(), MeterCount(), MeterCount()
    for number, name in enumerate(COUNTED, 1):
        setattr(counts, name, number)
        setattr(equal, name, number)
        setattr(other, name, number)
    other.payload_sent += 1
    shared = counts.shared()
    assert {name: getattr(shared, name) for name in COUNTED} == {name: at for at, name in enumerate(COUNTED, 1)}
    assert equal.shared() is shared
    assert other.shared() is not shared
