"""A lost MQTT connection leaves no reference cycle: its memory is freed at once, not by a later collection."""

from collections.abc import Callable
from typing import Final

import pytest

from gateway.access import Answer, Challenge, Visitor
from gateway_mqtt.server import MqttServer
from tests.garbage import garbage_of
from tests.net.far_end import connect, connect_and_lose, lose
from tests.protocols.mqtt.dialogue import Gateway
from tests.protocols.mqtt.packets import (
    FIVE,
    FOUR,
    Will,
    authentication,
    session_expiry,
    topic_alias,
    topic_alias_maximum,
    will_delay,
)

ALIASES: Final = topic_alias_maximum(5)
LASTING: Final = session_expiry(600)

OPEN: Final = [FIVE.connect("c", properties=ALIASES)]
KEPT: Final = [FIVE.connect("c", is_clean=False, properties=LASTING + ALIASES)]
SUBSCRIBE: Final = FIVE.subscribe(("t/#", 1), ("u/#", 2), ("$share/g/t", 2))


def publish(topic: str, qos: int, id: int) -> bytes:
    return FIVE.publish(topic, b"hi", qos=qos, id=id)


DELIVERED: Final = [SUBSCRIBE, publish("t/1", 1, 1), publish("u/1", 2, 2), publish("t", 2, 3)]

LIVES = [
    pytest.param([], id="silent"),
    pytest.param([OPEN[0][:5]], id="in the middle of CONNECT"),
    pytest.param([b"\x30\x03\0\1t"], id="after a violation in the first packet"),
    pytest.param([FIVE.connect("c", username="guest", password=b"wrong")], id="refused"),
    pytest.param([FIVE.connect("c" * 300)], id="with a refused client identifier"),
    pytest.param(
        [FIVE.connect("c", properties=authentication("SLOW", b"x"))], id="while its authentication is pending"
    ),
    pytest.param([FIVE.connect("c", properties=authentication("ASKS", b""))], id="during an extended authentication"),
    pytest.param(OPEN, id="idle"),
    pytest.param([FOUR.connect("c")], id="idle, of 3.1.1"),
    pytest.param([*OPEN, publish("t", 1, 1)[:4]], id="in the middle of a packet"),
    pytest.param([*OPEN, publish("t", 1, 1)], id="having published"),
    pytest.param([*OPEN, publish("t", 2, 1)], id="in the middle of a QoS 2 publish"),
    pytest.param([*OPEN, FIVE.publish("t", properties=topic_alias(1))], id="with an alias"),
    pytest.param([*OPEN, *DELIVERED], id="with unacknowledged deliveries"),
    pytest.param([*KEPT, *DELIVERED], id="with unacknowledged deliveries and a persistent session"),
    pytest.param([*OPEN, *DELIVERED, FIVE.pubrec(2), FIVE.puback(1)], id="with an unanswered PUBREL"),
    pytest.param([FIVE.connect("c", will=Will("t", b"x", retain=True))], id="with a will"),
    pytest.param(
        [FIVE.connect("c", properties=LASTING, will=Will("t", b"x", properties=will_delay(5)))],
        id="with a delayed will",
    ),
    pytest.param([*OPEN, FIVE.subscribe(("retained/#", 1))], id="while it receives retained messages"),
    pytest.param(
        [*KEPT, FIVE.subscribe(("retained/#", 1))], id="while it receives retained messages, with a persistent session"
    ),
    pytest.param([*OPEN, SUBSCRIBE, FIVE.unsubscribe("t/#", "$share/g/t")], id="after UNSUBSCRIBE"),
    pytest.param([*OPEN, FIVE.subscribe(("#/x", 1)), publish("$SYS/x", 1, 1)], id="refused something"),
    pytest.param([*OPEN, FIVE.publish("+")], id="after a violation"),
    pytest.param([*OPEN, *DELIVERED, FIVE.disconnect(0)], id="after DISCONNECT"),
]


class Slow:
    """An authentication method that continues the exchange, or never answers."""

    def __init__(self, asks: bool) -> None:
        self._asks = asks

    def begin(self, visitor: Visitor) -> "Slow":
        return self

    def step(self, data: bytes, answer: Callable[[Answer], None]) -> None:
        if self._asks:
            answer(Challenge(b"who?"))


@pytest.fixture
def gateway() -> Gateway:
    gateway = Gateway(prefetch=5, methods={"SLOW": Slow(asks=False), "ASKS": Slow(asks=True)})
    writer = gateway.client("w")
    for number in range(300):
        writer.publish(f"retained/{number}", b"hi", retain=True)
    return gateway


@pytest.mark.parametrize("sent", LIVES)
def test_a_lost_connection_leaves_no_cycle(gateway: Gateway, sent: list[bytes]) -> None:
    connect_and_lose(MqttServer, gateway, sent)  # objects that are created once are created now
    assert garbage_of(lambda: connect_and_lose(MqttServer, gateway, sent)) == []


@pytest.mark.parametrize("first", [OPEN, KEPT])
def test_a_session_takeover_leaves_no_cycle(gateway: Gateway, first: list[bytes]) -> None:
    def taken_over() -> None:
        one = connect(MqttServer, gateway, [*first, *DELIVERED])
        other = connect(MqttServer, gateway, first)
        lose(one, gateway)
        lose(other, gateway)

    taken_over()
    assert garbage_of(taken_over) == []


def test_a_keep_alive_timeout_leaves_no_cycle(gateway: Gateway) -> None:
    def silent() -> None:
        server = connect(MqttServer, gateway, [FIVE.connect("c", keep_alive=1), *DELIVERED])
        for _ in range(20):
            server.tick()
        gateway.settle()
        lose(server, gateway)

    silent()
    assert garbage_of(silent) == []
