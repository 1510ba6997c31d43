"""From CONNECT to an open connection where somebody takes long to say who it is: what is said meanwhile waits."""

from collections.abc import Callable

import pytest

from gateway.access import Answer, Dialogue, Failure, Principal, Success, Visitor
from gateway_mqtt.state import State
from tests.protocols.mqtt.dialogue import Client, Gateway
from tests.protocols.mqtt.packets import FIVE, authentication


class Slow:
    """A method that answers when the test says so."""

    def __init__(self) -> None:
        self.answers: list[Callable[[Answer], None]] = []

    def begin(self, visitor: Visitor) -> Dialogue:
        return self

    def step(self, data: bytes, answer: Callable[[Answer], None]) -> None:
        self.answers.append(answer)

    def let_in(self) -> None:
        self.answers.pop()(Success(Principal("guest")))


@pytest.fixture
def method() -> Slow:
    return Slow()


@pytest.fixture
def gateway(method: Slow) -> Gateway:
    return Gateway(methods={"SLOW": method})


@pytest.fixture
def client(gateway: Gateway) -> Client:
    """Somebody who said CONNECT, and is not known yet."""
    client = gateway.stranger()
    assert client.say(FIVE.connect("app", properties=authentication("SLOW"))) == []
    return client


def test_what_is_said_before_the_answer_is_done_after_it(client: Client, method: Slow) -> None:
    whole = FIVE.subscribe(("t", 0)) + FIVE.publish("t", b"early") + FIVE.pingreq()
    for at in range(0, len(whole), 5):
        assert client.say(whole[at : at + 5]) == []
    method.let_in()
    welcome, *rest = client.hear()
    assert welcome.startswith("CONNACK")
    assert rest == ["SUBACK #1 0", "PUBLISH t 'early'", "PINGRESP"]


def test_half_a_packet_waits_for_its_other_half(client: Client, method: Slow) -> None:
    packet = FIVE.publish("t", bytes(1000), qos=1, id=1)
    client.say(packet[:500])
    method.let_in()
    assert len(client.hear()) == 1
    assert client.say(packet[500:]) == ["PUBACK #1 NO_MATCHING_SUBSCRIBERS"]


def test_nobody_may_say_too_much_before_it(client: Client) -> None:
    assert client.say(bytes(70_000))[-1] == "closed"
    assert client.machine._incoming is None


def test_an_answer_that_comes_too_late_lets_nobody_in(gateway: Gateway, client: Client, method: Slow) -> None:
    client.lose()
    method.let_in()
    gateway.settle()
    assert client.machine.state is State.CLOSED
    assert len(gateway.vhost.sessions) == 0


def test_who_is_not_let_in_is_not_listened_to(gateway: Gateway, client: Client, method: Slow) -> None:
    client.say(FIVE.publish("t", b"early", retain=True))
    method.answers.pop()(Failure("wrong"))
    assert client.hear() == ["CONNACK NOT_AUTHORIZED", "closed"]
    assert len(gateway.vhost.retained) == 0


def test_the_session_is_opened_when_the_answer_is_there(gateway: Gateway, client: Client, method: Slow) -> None:
    meanwhile = gateway.client("app")
    method.let_in()
    assert client.hear()[0].startswith("CONNACK")
    assert meanwhile.hear() == ["DISCONNECT SESSION_TAKEN_OVER", "closed"]
