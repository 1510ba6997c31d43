"""The answers to clients of each protocol while the broker starts, byte by byte."""

from collections.abc import Callable

import pytest
from twisted.internet.testing import StringTransport

from gateway.net.not_ready import NotReadyFactory
from gateway.testing import FakeClock
from gateway_amqp import not_ready as amqp
from gateway_mqtt import not_ready as mqtt
from gateway_stomp import not_ready as stomp

WHY = "the broker is starting"
CONNECT_4 = b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00"
CONNECT_3 = b"\x10\x0e\x00\x06MQIsdp\x03\x02\x00\x3c\x00\x00"
CONNECT_5 = b"\x10\x0d\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x00"
REASON = b"\x1f\x00\x16" + WHY.encode()

ANSWERS = [
    pytest.param(mqtt.refusal, CONNECT_4, b"\x20\x02\x00\x03", id="3.1.1: return code 3"),
    pytest.param(mqtt.refusal, CONNECT_3, b"\x20\x02\x00\x03", id="3.1: return code 3"),
    pytest.param(mqtt.refusal, CONNECT_5, b"\x20\x1c\x00\x88\x19" + REASON, id="5.0: 0x88 with a reason string"),
    pytest.param(mqtt.refusal, b"\xc0\x00", b"", id="MQTT: another packet than CONNECT is closed without an answer"),
    pytest.param(
        mqtt.refusal, b"\x10\xff\xff\xff\xff\xff", b"", id="MQTT: an invalid length is closed without an answer"
    ),
    pytest.param(
        amqp.refusal,
        b"AMQP\x00\x00\x09\x01",
        b"\x01\x00\x00\x00\x00\x00\x35\x00\x0a\x00\x32\x01\x40\x2aCONNECTION_FORCED - "
        + WHY.encode()
        + b"\0\0\0\0\xce",
        id="AMQP: connection.close 320",
    ),
    pytest.param(amqp.refusal, b"GET / HTTP/1.1", b"AMQP\x00\x00\x09\x01", id="AMQP: another header"),
    pytest.param(
        stomp.refusal,
        b"\nCONNECT\naccept-version:1.2\n\n\0",
        b"ERROR\nmessage:Broker not ready\ncontent-type:text/plain\ncontent-length:23\n\n" + WHY.encode() + b"\n\0\n",
        id="STOMP: ERROR",
    ),
]


@pytest.mark.parametrize(("refusal", "said", "answer"), ANSWERS)
def test_the_answer_does_not_depend_on_how_the_bytes_are_cut(
    refusal: Callable[[bytes, str], bytes | None], said: bytes, answer: bytes
) -> None:
    pieces = [refusal(said[:end], WHY) for end in range(1, len(said) + 1)]
    first = next(piece for piece in pieces if piece is not None)
    assert first == answer


class Connection:
    """One connection to a listener that is not ready."""

    def __init__(self, factory: NotReadyFactory) -> None:
        self.transport = StringTransport()
        self.protocol = factory.buildProtocol(None)
        self.protocol.makeConnection(self.transport)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def factory(clock: FakeClock) -> NotReadyFactory:
    return NotReadyFactory(lambda data: stomp.refusal(data, WHY), clock)


def test_a_connection_is_answered_once_and_then_closed(factory: NotReadyFactory, clock: FakeClock) -> None:
    connection = Connection(factory)
    connection.protocol.dataReceived(b"CONNECT\n")
    assert connection.transport.value() == b""
    connection.protocol.dataReceived(b"\n\0")
    answer = connection.transport.value()
    connection.protocol.dataReceived(b"CONNECT\n\n\0")
    assert connection.transport.value() == answer != b""
    clock.advance(1)
    assert connection.transport.disconnecting


def test_a_client_that_sends_nothing_or_too_much_is_closed(factory: NotReadyFactory, clock: FakeClock) -> None:
    silent, talkative = Connection(factory), Connection(factory)
    talkative.protocol.dataReceived(b"x" * 100_000)
    assert talkative.transport.disconnected
    clock.advance(11)
    assert silent.transport.disconnected


def test_the_oldest_of_too_many_connections_is_closed(factory: NotReadyFactory) -> None:
    connections = [Connection(factory) for _ in range(1001)]
    assert [number for number, each in enumerate(connections) if each.transport.disconnected] == [0]
