"""A lost AMQP connection leaves no reference cycle: its memory is freed at once, not by a later collection."""

import pytest
from pamqp import commands

from gateway.kernel.names import REPLY_TO
from gateway_amqp.server import AmqpServer
from gateway_amqp.tuning import PROTOCOL_HEADER
from tests.conformance.amqp.tables import CLOSE, CLOSE_CHANNEL, ack, bind, consume, get, nack, queue
from tests.garbage import garbage_of
from tests.net.far_end import connect_and_lose
from tests.protocols.amqp.dialogue import Gateway
from tests.protocols.amqp.frames import asked, frame, publish, start_ok, wire

HANDSHAKE = [
    PROTOCOL_HEADER,
    wire(start_ok("\0guest\0guest"), channel=0),
    wire(commands.Connection.TuneOk(2047, 131_072, 60), channel=0),
    wire(asked(commands.Connection.Open, virtual_host="/"), channel=0),
    wire(commands.Channel.Open()),
]
PUBLISH = wire(publish("", "t", bytes(300_000)))
DELIVERED = [wire(consume("t")), PUBLISH, wire(get("t")), wire(commands.Basic.Qos(0, 9, True))]

LIVES = [
    pytest.param([], id="silent"),
    pytest.param(HANDSHAKE[:1], id="before the login"),
    pytest.param([*HANDSHAKE[:1], HANDSHAKE[1][:-5]], id="during the login"),
    pytest.param(HANDSHAKE[:2], id="before tuning"),
    pytest.param([HANDSHAKE[0], wire(start_ok("\0guest\0wrong"), channel=0)], id="refused"),
    pytest.param(HANDSHAKE, id="idle"),
    pytest.param([*HANDSHAKE, PUBLISH[:20]], id="in the middle of a method"),
    pytest.param([*HANDSHAKE, PUBLISH[:150_000]], id="in the middle of a body"),
    pytest.param([*HANDSHAKE, PUBLISH], id="having published"),
    pytest.param([*HANDSHAKE, *DELIVERED], id="with unsettled deliveries"),
    pytest.param([*HANDSHAKE, *DELIVERED, wire(ack(1)), wire(nack(2))], id="with settled deliveries"),
    pytest.param([*HANDSHAKE, wire(commands.Confirm.Select()), PUBLISH], id="with confirms"),
    pytest.param([*HANDSHAKE, wire(commands.Tx.Select()), *DELIVERED, wire(ack(1))], id="in a transaction"),
    pytest.param([*HANDSHAKE, wire(consume(REPLY_TO, no_ack=True))], id="waiting for replies"),
    pytest.param([*HANDSHAKE, wire(queue("x", exclusive=True), bind("x", "amq.topic", "k"))], id="with its own queue"),
    pytest.param([*HANDSHAKE, wire(consume("absent"))], id="with a channel refused"),
    pytest.param([*HANDSHAKE, *DELIVERED, wire(CLOSE_CHANNEL)], id="with a channel closed"),
    pytest.param([*HANDSHAKE, frame(9, 1, b"x")], id="after a violation"),
    pytest.param([*HANDSHAKE, *DELIVERED, wire(CLOSE, channel=0)], id="after connection.close"),
]


@pytest.mark.parametrize("sent", LIVES)
def test_a_lost_connection_leaves_no_cycle(sent: list[bytes]) -> None:
    gateway = Gateway()
    gateway.vhost.declare_queue("t")
    connect_and_lose(AmqpServer, gateway, sent)  # objects that are created once are created now
    assert garbage_of(lambda: connect_and_lose(AmqpServer, gateway, sent)) == []
