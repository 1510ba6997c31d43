"""Probe clients, one for each protocol, which measure how long a broker takes to answer light requests.

They run in a separate process, so that the load generator takes no time from them: ``python -m
benchmarks.lag.probes`` with the ports as arguments, ``amqp=5672 mqtt=1883``. The process prints ``ready`` after the
first answer of each, sends requests until its standard input ends, and prints the waits as JSON, in milliseconds.
"""

import json
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from socket import create_connection, socket
from threading import Event, Thread
from typing import Final

from benchmarks.load.amqp import wire
from benchmarks.load.amqp.client import Client, connected
from benchmarks.load.gateway import MANAGEMENT
from benchmarks.load.workloads import AMQP, MQTT, STOMP

#: A longer wait for an answer counts as a failure of the broker.
TIMEOUT_S: Final = 120.0

#: Pause between an answer and the next request.
PAUSE_S: Final = 0.002

QUEUE: Final = "lag.probe"

Request = Callable[[], object]
"""Sends a request and returns with the answer."""


@contextmanager
def amqp(port: int) -> Iterator[Request]:
    """Return a client that publishes a message and fetches it."""
    with connected(port) as client:
        client.socket.settimeout(TIMEOUT_S)
        client.declare_queue(QUEUE)
        message = wire.publish("", QUEUE, b"x", persistent=False)
        get = wire.method(60, 70, b"\x00\x00" + wire.short_string(QUEUE) + b"\x01")
        yield lambda: _publish_and_get(client, message, get)


def _publish_and_get(client: Client, message: bytes, get: bytes) -> None:
    client.socket.sendall(message)
    while True:  # the message may still be in transit
        client.socket.sendall(get)
        if client.got():
            return


@contextmanager
def mqtt(port: int) -> Iterator[Request]:
    """Return a client that publishes to a topic to which it subscribes."""
    with create_connection(("127.0.0.1", port), TIMEOUT_S) as peer:
        name = b"\x00\x09lag-probe"
        connect = b"\x00\x04MQTT\x04\xc2\x00\x00" + name + b"\x00\x05guest\x00\x05guest"
        peer.sendall(b"\x10" + bytes([len(connect)]) + connect)
        _read(peer, 4)
        peer.sendall(b"\x82\x0b\x00\x01\x00\x06lag/me\x00")
        _read(peer, 5)
        publish = b"\x30\x09\x00\x06lag/mex"
        yield lambda: (peer.sendall(publish), _read(peer, len(publish)))


@contextmanager
def stomp(port: int) -> Iterator[Request]:
    """Return a client that sends a message and waits for its receipt."""
    with create_connection(("127.0.0.1", port), TIMEOUT_S) as peer:
        peer.sendall(b"CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:guest\n\n\0")
        _read_to_nul(peer)
        send = b"SEND\ndestination:/exchange/amq.direct/lag.nowhere\nreceipt:r\n\nx\0"
        yield lambda: (peer.sendall(send), _read_to_nul(peer))


@contextmanager
def http(port: int) -> Iterator[Request]:
    """Return a client that requests ``/whoami`` from the management API."""
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    headers = {"Authorization": f"Basic {b64encode(b'guest:guest').decode()}"}

    def ask() -> None:
        connection.request("GET", "/api/whoami", headers=headers)
        if connection.getresponse().read()[:1] != b"{":
            raise ConnectionError("no answer of the management API")

    try:
        yield ask
    finally:
        connection.close()


PROBES: Final[Mapping[str, Callable[[int], object]]] = {AMQP: amqp, MQTT: mqtt, STOMP: stomp, MANAGEMENT: http}


def main() -> int:
    """Send requests until standard input ends; print the waits."""
    ports = {name: int(port) for name, _, port in (word.partition("=") for word in sys.argv[1:])}
    waits: dict[str, list[float]] = {name: [] for name in ports}
    is_over = Event()
    with ExitStack() as stack:
        questions = {name: stack.enter_context(PROBES[name](port)) for name, port in ports.items()}  # type: ignore[arg-type]
        for request in questions.values():
            request()
        threads = [
            Thread(target=_probe, args=(request, waits[name], is_over), daemon=True)
            for name, request in questions.items()
        ]
        for thread in threads:
            thread.start()
        print("ready", flush=True)
        sys.stdin.read()
        is_over.set()
        for thread in threads:
            thread.join(TIMEOUT_S)
    print(json.dumps(waits), flush=True)
    return 0


def _probe(request: Request, waits: list[float], is_over: Event) -> None:
    while not is_over.wait(PAUSE_S):
        start = time.perf_counter()
        request()
        waits.append((time.perf_counter() - start) * 1e3)


def _read(peer: socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = peer.recv(size - len(data))
        if not piece:
            raise ConnectionError("the broker closed the connection")
        data += piece
    return data


def _read_to_nul(peer: socket) -> bytes:
    data = b""
    while not data.rstrip(b"\n").endswith(b"\0"):
        piece = peer.recv(4096)
        if not piece:
            raise ConnectionError("the broker closed the connection")
        data += piece
    return data


if __name__ == "__main__":
    sys.exit(main())
