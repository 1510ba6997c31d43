"""A lost MQTT connection leaves no reference cycle: what it held is freed at once, not by a later collection."""

from collections.abc import Callable
from typing import Final

import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionDone
from twisted.python.failure import Failure

from gateway.access import Answer, Challenge, Visitor
from gateway_mqtt.server import MqttServer
from tests.garbage import garbage_of
from tests.net.test_stomp_server import FarEnd
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
    pytest.param([OPEN[0][:5]], id="in the midst of CONNECT"),
    pytest.param([b"\x30\x03\0\1t"], id="having broken the rules at once"),
    pytest.param([FIVE.connect("c", username="guest", password=b"wrong")], id="refused"),
    pytest.param([FIVE.connect("c" * 300)], id="refused for its identifier"),
    pytest.param([FIVE.connect("c", properties=authentication("SLOW", b"x"))], id="while it is being judged"),
    pytest.param([FIVE.connect("c", properties=authentication("ASKS", b""))], id="while it is asked"),
    pytest.param(OPEN, id="idle"),
    pytest.param([FOUR.connect("c")], id="idle, of 3.1.1"),
    pytest.param([*OPEN, publish("t", 1, 1)[:4]], id="in the midst of a packet"),
    pytest.param([*OPEN, publish("t", 1, 1)], id="having published"),
    pytest.param([*OPEN, publish("t", 2, 1)], id="in the midst of a publish of QoS 2"),
    pytest.param([*OPEN, FIVE.publish("t", properties=topic_alias(1))], id="with an alias"),
    pytest.param([*OPEN, *DELIVERED], id="with deliveries under way"),
    pytest.param([*KEPT, *DELIVERED], id="with deliveries under way and a session that is kept"),
    pytest.param([*OPEN, *DELIVERED, FIVE.pubrec(2), FIVE.puback(1)], id="with a release under way"),
    pytest.param([FIVE.connect("c", will=Will("t", b"x", retain=True))], id="with a will"),
    pytest.param(
        [FIVE.connect("c", properties=LASTING, will=Will("t", b"x", properties=will_delay(5)))], id="with a late will"
    ),
    pytest.param([*OPEN, FIVE.subscribe(("retained/#", 1))], id="while it is sent what is retained"),
    pytest.param([*KEPT, FIVE.subscribe(("retained/#", 1))], id="the same, on disk"),
    pytest.param([*OPEN, SUBSCRIBE, FIVE.unsubscribe("t/#", "$share/g/t")], id="with subscriptions given up"),
    pytest.param([*OPEN, FIVE.subscribe(("#/x", 1)), publish("$SYS/x", 1, 1)], id="refused something"),
    pytest.param([*OPEN, FIVE.publish("+")], id="having broken the rules"),
    pytest.param([*OPEN, *DELIVERED, FIVE.disconnect(0)], id="having said goodbye"),
]


class Slow:
    """An authentication method that asks, or never answers."""

    def __init__(self, asks: bool) -> None:
        self._asks = asks

    def begin(self, visitor: Visitor) -> "Slow":
        return self

    def step(self, data: bytes, answer: Callable[[Answer], None]) -> None:
        if self._asks:
            answer(Challenge(b"who?"))


def live(gateway: Gateway, said: list[bytes]) -> None:
    """Connect, say all of this and be lost."""
    lose(gateway, connected(gateway, said))


def connected(gateway: Gateway, said: list[bytes]) -> MqttServer:
    server = MqttServer(gateway.settings, gateway.turn)
    far_end = FarEnd(peerAddress=IPv4Address("TCP", "127.0.0.1", 50_000))
    server.makeConnection(far_end)
    for data in said:
        server.dataReceived(data)
        gateway.settle()
    far_end.producer = None  # a real transport forgets it by itself
    return server


def lose(gateway: Gateway, server: MqttServer) -> None:
    server.connectionLost(Failure(ConnectionDone()))
    server.tick()  # one that was due already
    gateway.settle()


@pytest.fixture
def gateway() -> Gateway:
    gateway = Gateway(prefetch=5, methods={"SLOW": Slow(asks=False), "ASKS": Slow(asks=True)})
    writer = gateway.client("w")
    for number in range(300):
        writer.publish(f"retained/{number}", b"hi", retain=True)
    return gateway


@pytest.mark.parametrize("said", LIVES)
def test_a_lost_connection_leaves_no_cycle(gateway: Gateway, said: list[bytes]) -> None:
    live(gateway, said)  # what is made once and stays is made now
    assert garbage_of(lambda: live(gateway, said)) == []


@pytest.mark.parametrize("first", [OPEN, KEPT])
def test_a_connection_that_is_taken_over_leaves_no_cycle(gateway: Gateway, first: list[bytes]) -> None:
    def taken_over() -> None:
        one = connected(gateway, [*first, *DELIVERED])
        other = connected(gateway, first)
        lose(gateway, one)
        lose(gateway, other)

    taken_over()
    assert garbage_of(taken_over) == []


def test_a_connection_that_falls_silent_leaves_no_cycle(gateway: Gateway) -> None:
    def silent() -> None:
        server = connected(gateway, [FIVE.connect("c", keep_alive=1), *DELIVERED])
        for _ in range(20):
            server.tick()
        gateway.settle()
        lose(gateway, server)

    silent()
    assert garbage_of(silent) == []
