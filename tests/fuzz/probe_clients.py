"""Probe clients: each sends a message, waits until it returns, and measures the round trip."""

import socket
import time
from base64 import b64encode
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Final, Protocol

import pika

from tests.fuzz import mqtt_seeds, stomp_seeds, web_seeds

Address = tuple[str, int]

_LOGIN: Final = "Basic " + b64encode(b"guest:guest").decode()

#: Longest round trip before the client fails, in seconds.
PATIENCE_S: Final = 60.0


class Wire(Protocol):
    """A connection for bytes."""

    def send(self, data: bytes) -> None:
        """Send all of the data."""
        ...

    def receive(self) -> bytes:
        """Wait for bytes and return them, at least one."""
        ...


class Plain:
    """A connection over TCP."""

    def __init__(self, address: Address) -> None:
        self._socket = socket.create_connection(address, timeout=PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> bytes:
        data = self._socket.recv(65_536)
        if not data:
            raise ConnectionError("the broker closed the connection of a probe client")
        return data


class Web:
    """A connection over WebSocket."""

    def __init__(self, address: Address, protocol: str) -> None:
        self._wire = Plain(address)
        self._wire.send(web_seeds.handshake(protocol))
        self._came = b""
        while b"\r\n\r\n" not in self._came:
            self._came += self._wire.receive()
        head, _, self._came = self._came.partition(b"\r\n\r\n")
        assert b" 101 " in head.split(b"\r\n")[0], head

    def send(self, data: bytes) -> None:
        self._wire.send(web_seeds.message(data))

    def receive(self) -> bytes:
        while True:
            if len(self._came) >= 4:
                size, at = self._came[1], 2
                if size == 126:
                    size, at = int.from_bytes(self._came[2:4], "big"), 4
                if len(self._came) >= at + size:
                    payload, self._came = self._came[at : at + size], self._came[at + size :]
                    if payload:
                        return payload
                    continue
            self._came += self._wire.receive()


class ProbeClient:
    """A probe client of a protocol; ``ask`` sends a message and returns when it has come back."""

    def __init__(self, wire: Wire, ask: Callable[[Wire, int], None]) -> None:
        self._wire = wire
        self._ask = ask
        self._count = 0

    def round_trip_s(self) -> float:
        """Return the duration of one round trip, in seconds."""
        self._count += 1
        started = time.perf_counter()
        self._ask(self._wire, self._count)
        return time.perf_counter() - started


def _until(wire: Wire, marker: bytes) -> None:
    came = b""
    while marker not in came:
        came = came[-len(marker) :] + wire.receive()


def stomp(wire: Wire) -> ProbeClient:
    """Return a STOMP client on its own queue."""
    wire.send(stomp_seeds.frame("STOMP", "accept-version:1.2", "host:/", "login:guest", "passcode:guest"))
    _until(wire, b"CONNECTED")
    wire.send(stomp_seeds.frame("SUBSCRIBE", "id:0", "destination:/topic/probe", "receipt:s"))
    _until(wire, b"receipt-id:s")

    def ask(wire: Wire, number: int) -> None:
        body = b"probe-%d." % number
        wire.send(stomp_seeds.frame("SEND", "destination:/topic/probe", body=body))
        _until(wire, body)

    return ProbeClient(wire, ask)


def mqtt(wire: Wire) -> ProbeClient:
    """Return an MQTT client that subscribes to its own messages."""
    wire.send(mqtt_seeds.connect("probe", user="guest", password="guest"))
    _until(wire, b"\x20\x02")
    wire.send(mqtt_seeds.packet(0x82, b"\0\x01" + mqtt_seeds.text("probe") + b"\0"))
    _until(wire, b"\x90\x03")

    def ask(wire: Wire, number: int) -> None:
        body = b"probe-%d." % number
        wire.send(mqtt_seeds.publish("probe", body))
        _until(wire, body)

    return ProbeClient(wire, ask)


class _Amqp(ProbeClient):
    """An AMQP client that publishes and gets."""

    def __init__(self, address: Address) -> None:
        credentials = pika.PlainCredentials("guest", "guest")
        parameters = pika.ConnectionParameters(*address, credentials=credentials, heartbeat=0)
        self._channel = pika.BlockingConnection(parameters).channel()
        self._channel.queue_declare("probe", exclusive=True)

    def round_trip_s(self) -> float:
        started = time.perf_counter()
        self._channel.basic_publish("", "probe", b"hi")
        while self._channel.basic_get("probe", auto_ack=True)[0] is None:
            pass
        return time.perf_counter() - started


class _Http(ProbeClient):
    """A client that requests ``/whoami``, with a new connection each time, as `curl` does."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def round_trip_s(self) -> float:
        started = time.perf_counter()
        connection = HTTPConnection(*self._address, timeout=PATIENCE_S)
        connection.request("GET", "/api/whoami", headers={"Authorization": _LOGIN})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        assert answer.status == 200, answer.status
        return time.perf_counter() - started


def over_stomp(address: Address) -> ProbeClient:
    return stomp(Plain(address))


def over_web_stomp(address: Address) -> ProbeClient:
    return stomp(Web(address, "v12.stomp"))


def over_mqtt(address: Address) -> ProbeClient:
    return mqtt(Plain(address))


def over_web_mqtt(address: Address) -> ProbeClient:
    return mqtt(Web(address, "mqtt"))


def over_amqp(address: Address) -> ProbeClient:
    return _Amqp(address)


def over_http(address: Address) -> ProbeClient:
    return _Http(address)
