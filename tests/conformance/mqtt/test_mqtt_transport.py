"""The transport: a byte stream that may be cut anywhere, and WebSocket (4.2, 6, 7)."""

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    RejectConnection,
    Request,
    TextMessage,
)

from gateway.net.websocket import MQTT, WebSocketFactory
from gateway_mqtt.server import MqttFactory
from tests.conformance.mqtt.edge import HERE, transport
from tests.conformance.mqtt.tables import CLOSED, statements
from tests.protocols.mqtt.dialogue import Gateway
from tests.protocols.mqtt.frame_reader import FrameReader
from tests.protocols.mqtt.packets import WRITERS


def conversation(version: int) -> bytes:
    write = WRITERS[version]
    return b"".join(
        [
            write.connect("c"),
            write.subscribe(("t", 2)),
            write.publish("t", b"x" * 200, qos=2, id=1),
            write.pubrel(1),
            write.pubrec(1),
            write.pubcomp(1),
            write.pingreq(),
            write.disconnect(),
        ]
    )


HEARD = ["SUBACK #1 2", f"PUBLISH q2 #1 t '{'x' * 200}'", "PUBREC #1", "PUBCOMP #1", "PUBREL #1", "PINGRESP", CLOSED]


@statements("4.2.0-1", "7.1.1-1 7.0.0-2")
def test_a_stream_of_single_bytes_is_understood(gateway: Gateway, version: int) -> None:
    client = gateway.new_client(version)
    answers = [line for octet in conversation(version) for line in client.request(bytes((octet,)))]
    assert answers[0].startswith("CONNACK")
    assert answers[1:] == HEARD


@statements("4.2.0-1", "7.1.1-1")
def test_cutting_a_stream_in_two_does_not_change_the_answers(version: int) -> None:
    stream = conversation(version)
    for cut in range(1, len(stream)):
        client = Gateway().new_client(version)
        answers = client.request(stream[:cut]) + client.request(stream[cut:])
        assert answers[1:] == HEARD


# ---------------------------------------------------------------- WebSocket


class Browser:
    """A WebSocket client, with the server side of its connection."""

    def __init__(self, gateway: Gateway, version: int) -> None:
        self._gateway = gateway
        mqtt = MqttFactory(gateway.settings, gateway.turn)
        self._server = WebSocketFactory(mqtt, MQTT, "/ws", gateway.clock, 10).buildProtocol(HERE)
        self.transport = transport()
        self._server.makeConnection(self.transport)  # type: ignore[no-untyped-call]
        self._client = WSConnection(ConnectionType.CLIENT)
        self._reader = FrameReader(version)

    def ask(self, *subprotocols: str) -> Event:
        return self.send(Request(host="localhost", target="/ws", subprotocols=list(subprotocols)))[0]

    def send(self, *events: Event) -> list[Event]:
        for event in events:
            self._server.dataReceived(self._client.send(event))
        self._gateway.settle()
        if data := self.transport.value():
            self.transport.clear()
            self._client.receive_data(data)
        return list(self._client.events())

    def send_packets(self, *frames: bytes) -> list[str]:
        """Send each packet in its own frame; return what is received, all in binary frames."""
        answers = self.send(*(BytesMessage(frame) for frame in frames))
        data = [bytes(event.data) for event in answers if isinstance(event, BytesMessage)]
        assert len(data) == len([event for event in answers if not isinstance(event, CloseConnection)])
        return [str(packet) for packet in self._reader.feed(b"".join(data))]


@pytest.fixture
def browser(gateway: Gateway, version: int) -> Browser:
    return Browser(gateway, version)


@statements("6.0.0-4", "6.0.0-4")
def test_the_subprotocol_is_mqtt(browser: Browser, version: int) -> None:
    accepted = browser.ask("other", "mqtt")
    assert isinstance(accepted, AcceptConnection)
    assert accepted.subprotocol == "mqtt"


@statements("6.0.0-4", "6.0.0-4")
def test_a_client_without_the_mqtt_subprotocol_is_refused(browser: Browser, version: int) -> None:
    refused = browser.ask("other")
    assert isinstance(refused, RejectConnection)
    assert refused.status_code == 400
    assert browser.transport.disconnecting


@statements("6.0.0-1", "6.0.0-1")
def test_packets_are_in_binary_frames(browser: Browser, version: int) -> None:
    browser.ask("mqtt")
    write = WRITERS[version]
    assert browser.send_packets(write.connect("c"))[0].startswith("CONNACK")
    assert browser.send_packets(write.pingreq()) == ["PINGRESP"]


@statements("6.0.0-1", "6.0.0-1")
def test_any_other_frame_ends_the_connection(browser: Browser, version: int) -> None:
    browser.ask("mqtt")
    write = WRITERS[version]
    browser.send_packets(write.connect("c"))
    [close] = browser.send(TextMessage(write.pingreq().decode("latin-1")))
    assert isinstance(close, CloseConnection)
    assert browser.transport.disconnecting


@statements("6.0.0-2", "6.0.0-2")
def test_frames_and_packets_may_be_cut_differently(browser: Browser, version: int) -> None:
    browser.ask("mqtt")
    stream = conversation(version)
    answers = browser.send_packets(*(stream[at : at + 7] for at in range(0, len(stream), 7)))
    assert answers[0].startswith("CONNACK")
    assert answers[1:] == HEARD[:-1]
    other = Browser(Gateway(), version)
    other.ask("mqtt")
    assert other.send_packets(stream)[1:] == HEARD[:-1]
