"""Input behind a login that is decided later: it is handled in turns, each within its budget, and none is left."""

from collections.abc import Callable
from typing import Any

import pytest
from pamqp import commands

from gateway.access import Access, Credentials, Principal
from gateway.kernel.budget import TURN_S, WORK_PER_CLOCK_READING
from gateway.net.peer import PeerProtocol
from gateway.testing.clock import FakeClock
from gateway_amqp.server import AmqpServer
from gateway_amqp.tuning import PROTOCOL_HEADER
from gateway_mqtt.server import MqttServer
from gateway_stomp.server import StompServer
from tests.conformance.amqp.tables import consume, queue
from tests.net.far_end import connect
from tests.protocols.amqp import dialogue as amqp
from tests.protocols.amqp.frames import asked, start_ok, wire
from tests.protocols.mqtt import dialogue as mqtt
from tests.protocols.mqtt.packets import FIVE
from tests.protocols.stomp import dialogue as stomp
from tests.protocols.stomp.dialogue import frame


class Late:
    """An authenticator that answers when a test calls ``answer``."""

    def __init__(self) -> None:
        self._answers: list[Callable[[Principal | None], None]] = []

    def authenticate(self, credentials: Credentials, answer: Callable[[Principal | None], None]) -> None:
        self._answers.append(answer)

    def answer(self) -> None:
        self._answers.pop()(Principal("guest"))
        assert not self._answers


AMQP = [
    PROTOCOL_HEADER,
    wire(start_ok("\0guest\0guest"), channel=0),
    wire(commands.Connection.TuneOk(2047, 131_072, 60), channel=0),
    wire(asked(commands.Connection.Open, virtual_host="/"), channel=0),
    wire(commands.Channel.Open()),
    wire(queue("q"), consume("q", tag="last")),
]
MQTT = [FIVE.connect("c", username="guest", password=b"guest"), FIVE.subscribe(("first", 1)), FIVE.pingreq()]
STOMP = [
    frame("CONNECT", {"login": "guest", "passcode": "guest", "accept-version": "1.2"}),
    frame("SUBSCRIBE", {"id": "0", "destination": "/queue/q", "receipt": "first"}),
    frame("SUBSCRIBE", {"id": "1", "destination": "/queue/q", "receipt": "last"}),
]

PROTOCOLS = [
    pytest.param(AmqpServer, amqp.Gateway, AMQP, b"\x04last", id="amqp"),
    pytest.param(MqttServer, mqtt.Gateway, MQTT, b"\xd0\x00", id="mqtt"),
    pytest.param(StompServer, stomp.Gateway, STOMP, b"receipt-id:last", id="stomp"),
]


def _gateway(kind: Any, late: Late) -> Any:  # any harness
    class Gateway(kind):  # type: ignore[misc]  # the harness of one protocol
        def _access_by(self, view: Any, directory: Any) -> Access:
            return Access([late], view.authorizers(directory))

    return Gateway(clock=FakeClock())


def _spend_turn(gateway: Any) -> None:
    budget = gateway.turn.budget
    budget.is_spent()
    gateway.fake_clock.advance(2 * TURN_S)
    budget.work = WORK_PER_CLOCK_READING


@pytest.mark.parametrize("is_spent", [False, True], ids=["within the budget", "in a spent turn"])
@pytest.mark.parametrize(("server", "kind", "sent", "answer"), PROTOCOLS)
def test_all_input_behind_a_late_login_is_handled(
    server: type[PeerProtocol], kind: Any, sent: list[bytes], answer: bytes, is_spent: bool
) -> None:
    late = Late()
    gateway = _gateway(kind, late)
    transport = connect(server, gateway, [b"".join(sent)]).transport
    assert transport is not None
    assert answer not in transport.value()
    if is_spent:
        _spend_turn(gateway)
    late.answer()
    gateway.turn.go_on()
    gateway.settle()
    assert answer in transport.value()


@pytest.mark.parametrize(("server", "kind", "sent", "answer"), PROTOCOLS)
def test_a_cut_request_behind_a_late_login_waits_for_its_rest(
    server: type[PeerProtocol], kind: Any, sent: list[bytes], answer: bytes
) -> None:
    late = Late()
    gateway = _gateway(kind, late)
    whole = b"".join(sent)
    peer = connect(server, gateway, [whole[:-1]])
    late.answer()
    gateway.turn.go_on()
    gateway.settle()
    peer.dataReceived(whole[-1:])
    gateway.settle()
    assert answer in peer.transport.value()  # type: ignore[union-attr]
    assert not peer.io.has_leftover
