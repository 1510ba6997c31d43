"""Asynchronous authentication: packets that arrive during it wait."""

from collections.abc import Callable

import pytest

from gateway.access import Answer, Dialogue, Failure, Principal, Success, Visitor
from gateway_mqtt.state import State
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import FIVE, authentication


class SlowMethod:
    """An authentication method that answers when the test calls it."""

    def __init__(self) -> None:
        self.answers: list[Callable[[Answer], None]] = []

    def begin(self, visitor: Visitor) -> Dialogue:
        return self

    def step(self, data: bytes, answer: Callable[[Answer], None]) -> None:
        self.answers.append(answer)

    def succeed(self) -> None:
        self.answers.pop()(Success(Principal("guest")))


@pytest.fixture
def method() -> SlowMethod:
    return SlowMethod()


@pytest.fixture
def gateway(method: SlowMethod) -> Gateway:
    return Gateway(methods={"SLOW": method})


@pytest.fixture
def client(gateway: Gateway) -> Client:
    """Return a client that has sent CONNECT and is not authenticated yet."""
    client = gateway.new_client()
    assert client.request(FIVE.connect("app", properties=authentication("SLOW"))) == []
    return client


def test_packets_sent_during_authentication_are_handled_after_it(client: Client, method: SlowMethod) -> None:
    whole = FIVE.subscribe(("t", 0)) + FIVE.publish("t", b"early") + FIVE.pingreq()
    for at in range(0, len(whole), 5):
        assert client.request(whole[at : at + 5]) == []
    method.succeed()
    welcome, *rest = client.receive()
    assert welcome.startswith("CONNACK")
    assert rest == ["SUBACK #1 0", "PUBLISH t 'early'", "PINGRESP"]


def test_an_incomplete_packet_waits_for_its_rest(client: Client, method: SlowMethod) -> None:
    packet = FIVE.publish("t", bytes(1000), qos=1, id=1)
    client.request(packet[:500])
    method.succeed()
    assert len(client.receive()) == 1
    assert client.request(packet[500:]) == ["PUBACK #1 NO_MATCHING_SUBSCRIBERS"]


def test_too_many_bytes_during_authentication_close_the_connection(client: Client) -> None:
    assert client.request(bytes(70_000))[-1] == "closed"
    assert client.machine._incoming is None


def test_a_late_authentication_result_is_ignored(gateway: Gateway, client: Client, method: SlowMethod) -> None:
    client.lose()
    method.succeed()
    gateway.settle()
    assert client.machine.state is State.CLOSED
    assert len(gateway.vhost.sessions) == 0


def test_packets_of_a_refused_client_are_ignored(gateway: Gateway, client: Client, method: SlowMethod) -> None:
    client.request(FIVE.publish("t", b"early", retain=True))
    method.answers.pop()(Failure("wrong"))
    assert client.receive() == ["CONNACK NOT_AUTHORIZED", "closed"]
    assert len(gateway.vhost.retained) == 0


def test_the_session_is_opened_after_authentication(gateway: Gateway, client: Client, method: SlowMethod) -> None:
    meanwhile = gateway.client("app")
    method.succeed()
    assert client.receive()[0].startswith("CONNACK")
    assert meanwhile.receive() == ["DISCONNECT SESSION_TAKEN_OVER", "closed"]
