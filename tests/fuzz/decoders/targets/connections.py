"""Whole connections of AMQP, MQTT and STOMP on a broker in memory: any bytes, cut anywhere, raise nothing.

The answers are not compared: confirms of one turn are one frame, of several turns several.
"""

import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

from pamqp import commands

from tests.fuzz.decoders.corpus import sessions_of
from tests.fuzz.decoders.laws import cuttings, require
from tests.fuzz.decoders.target import Target
from tests.fuzz.decoders.targets import amqp, mqtt, stomp
from tests.management.client_connection import ClientConnection
from tests.management.console import Console
from tests.protocols.amqp.dialogue import Gateway as AmqpGateway
from tests.protocols.amqp.dialogue import Peer
from tests.protocols.amqp.frames import asked, handshake, publish, wire
from tests.protocols.mqtt.dialogue import Client as MqttClient
from tests.protocols.mqtt.dialogue import Gateway as MqttGateway
from tests.protocols.mqtt.packets import FIVE, FOUR
from tests.protocols.stomp.dialogue import Client as StompClient
from tests.protocols.stomp.dialogue import Gateway as StompGateway
from tests.protocols.stomp.dialogue import frame

#: The most input that a connection keeps after a read, in bytes: more than the longest input of a target.
_MOST_KEPT: Final = 256 * 1024


def _fed(gateway: Any, peer: Any, data: bytes) -> None:  # Any: the dialogues of three protocols
    """Give a connection the data in a few pieces; its answers are not decoded."""
    peer.take = lambda answer: None
    *_, pieces = list(cuttings(data[1:]))[:3]
    for piece in pieces if data[:1] > b"\x7f" else (data[1:],):
        peer.machine.receive(piece)
        gateway.settle()
        require(_kept(peer.machine) <= _MOST_KEPT, "kept bytes are bounded")
    peer.lose()
    gateway.settle()


def _kept(machine: Any) -> int:
    incoming = getattr(machine, "_incoming", None)
    return getattr(incoming, "size", 0)


def _connection(protocol: str) -> Callable[[bytes], None]:
    def check(data: bytes) -> None:
        if protocol == "amqp":
            gateway: Any = AmqpGateway()
            peer: Any = Peer(gateway)
        elif protocol == "mqtt":
            gateway = MqttGateway()
            peer = MqttClient(gateway, 5)
        else:
            gateway = StompGateway()
            peer = StompClient(gateway, "1.2")
        _fed(gateway, peer, data)

    return check


def _recorded(protocol: str) -> Iterable[bytes]:
    for session in sessions_of(protocol):
        for first in (b"\0", b"\xff"):
            yield first + b"".join(session)[:8192]


def _amqp_seeds() -> Iterable[bytes]:
    yield from _recorded("amqp")
    yield b"\0" + wire(
        *handshake(), asked(commands.Queue.Declare, queue="q"), commands.Confirm.Select(), publish("", "q", b"hi"),
        asked(commands.Basic.Get, queue="q"), commands.Basic.Ack(1, False), commands.Tx.Select(),
        publish("", "q", b"2"),
    )  # fmt: skip
    yield b"\xff" + wire(*handshake(), asked(commands.Queue.Declare, queue="q"), *[publish("", "q", b"many")] * 9)


def _mqtt_seeds() -> Iterable[bytes]:
    yield from _recorded("mqtt")
    yield b"\0" + FIVE.connect("x") + FIVE.subscribe(("#", 2)) + FIVE.publish("t", b"hi", qos=2, id=1) + FIVE.pubrel(1)
    yield b"\xff" + FOUR.connect("x") + FOUR.subscribe(("t", 1)) + FOUR.publish("t", b"hi", qos=1, id=1)


def _stomp_seeds() -> Iterable[bytes]:
    yield from _recorded("stomp")
    opening = frame("CONNECT", {"login": "guest", "passcode": "guest", "accept-version": "1.2"})
    subscribe = frame("SUBSCRIBE", {"id": "0", "destination": "/queue/q", "ack": "client"})
    yield b"\0" + opening + subscribe + frame("SEND", {"destination": "/queue/q", "receipt": "r"}, b"hi")
    yield b"\xff" + opening + frame("BEGIN", {"transaction": "t"}) + frame("COMMIT", {"transaction": "t"})


def _http(data: bytes) -> None:
    """Any requests to the HTTP API are answered, or their connection is closed; the login is one of no user."""
    client = ClientConnection(_console())
    *_, pieces = list(cuttings(data[1:]))[:3]
    for piece in pieces if data[:1] > b"\x7f" else (data[1:],):
        client.send(piece)
        client.turn()
    client.hang_up()


@cache
def _console() -> Console:
    """Return the API that all inputs share: without a login they change nothing in it."""
    return Console(traces=Path(tempfile.gettempdir()))


def _http_seeds() -> Iterable[bytes]:
    for session in sessions_of("http"):
        yield b"\0" + b"".join(session)[:4096]
    head = b"GET /api/overview HTTP/1.1\r\nHost: 192.0.2.7:15672\r\n"
    yield b"\0" + head + b"Authorization: Basic Z3Vlc3Q6eA==\r\n\r\n" + head + b"\r\n"
    put = b"PUT /api/queues/%2F/q HTTP/1.1\r\nHost: 192.0.2.7:15672\r\n"
    yield b"\xff" + put + b"Content-Length: 16\r\n\r\n" + b'{"durable":true}'
    yield b"\xff" + put + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"


_HTTP_TOKENS: Final = (
    b"GET ", b"PUT ", b"POST ", b"DELETE ", b"OPTIONS ", b"HTTP/1.1\r\n", b"HTTP/1.0\r\n", b"Host: ", b"\r\n\r\n",
    b"Content-Length: ", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n", b"Expect: 100-continue\r\n",
    b"Origin: http://x\r\n", b"Authorization: Basic ", b"Cookie: ", b"/api/", b"%2F", b"/../", b"?columns=",
)  # fmt: skip

TARGETS: Final = (
    Target("connection-amqp", _connection("amqp"),
           (
               "gateway_amqp.connection:Connection.receive", "gateway_amqp.channel:Channel.method",
               "gateway_amqp.channel:Channel.publish", "gateway_amqp.channel:Channel.publish_repeated",
               "gateway_amqp.channel:Channel.ack", "gateway_amqp.targets:Targets.resolve",
               "gateway_amqp.incoming:IncomingBytes.add",
               "gateway_amqp.incoming:IncomingBytes.keep", "gateway_amqp.repetition:LastPublish.learn",
           ),
           _amqp_seeds, amqp.TOKENS),
    Target("connection-mqtt", _connection("mqtt"), ("gateway_mqtt.connection:Connection.receive",), _mqtt_seeds,
           mqtt.TOKENS),
    Target("connection-stomp", _connection("stomp"), ("gateway_stomp.connection:Connection.receive",), _stomp_seeds,
           stomp.TOKENS),
    Target("connection-http", _http,
           ("gateway.management.web.connection:HttpProtocol.dataReceived",), _http_seeds, _HTTP_TOKENS),
)  # fmt: skip
