"""Waits of new clients while a broker recovers: each port answers, at first that the broker is not ready.

The broker is filled and stopped. New clients then connect to each port from the start of the process on, one after
another, until they are served.
"""

import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from socket import create_connection
from typing import Final

from benchmarks.lag.mqtt_clients import connect_packet
from benchmarks.load import gateway
from benchmarks.load.amqp import wire
from benchmarks.load.amqp.client import connected
from benchmarks.load.amqp.filling import fill
from benchmarks.load.processes import resident_bytes, stop
from benchmarks.load.running import Broker
from benchmarks.load.workloads import AMQP, MQTT, STOMP

SCENARIO: Final = "recovery of 100,000 queues and 300,000 messages"
QUEUES: Final = 100_000
MESSAGES: Final = 300_000

#: Longest wait of a new client, and longest time by which the first answer may come later than that of an empty
#: broker, in milliseconds.
REQUIRED_ANSWER_MS: Final = 1000.0

#: A recovery that takes longer counts as a failure.
TIMEOUT_S: Final = 120.0

#: Pause between two connections to a port, in seconds.
PAUSE_S: Final = 0.005


@dataclass(frozen=True, slots=True)
class Greeting:
    """The first bytes of a client, with parts of two answers: when it is served, and while the broker is not ready."""

    request: bytes
    served: bytes
    not_ready: bytes


#: AMQP is answered with connection.start (10, 10) or connection.close (10, 50), HTTP with a request to log in or 503.
GREETINGS: Final[Mapping[str, Greeting]] = {
    AMQP: Greeting(wire.PROTOCOL_HEADER, b"\x00\x0a\x00\x0a", b"\x00\x0a\x00\x32"),
    MQTT: Greeting(connect_packet("lag-new", has_will=False), b"\x20\x02\x00\x00", b"\x20\x02\x00\x03"),
    STOMP: Greeting(
        b"CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:guest\n\n\0", b"CONNECTED\n", b"ERROR\n"
    ),
    gateway.MANAGEMENT: Greeting(
        b"GET /api/health/checks/ready-to-serve-clients HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", b" 401 ", b" 503 "
    ),
}


@dataclass(slots=True)
class Answers:
    """The answers of one port, from the start of the process; all waits in milliseconds."""

    first_ms: float = 0.0
    served_ms: float = 0.0
    waits_ms: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Recovery:
    """The answers by protocol of a broker that recovers and of an empty one, and the first one's memory in MiB."""

    answers: Mapping[str, Answers]
    empty: Mapping[str, Answers]
    memory_mib: int

    def delay_ms(self, protocol: str) -> float:
        """Return how much later than an empty broker the recovering one gave its first answer."""
        return self.answers[protocol].first_ms - self.empty[protocol].first_ms


def recover(directory: Path, scale: float) -> Recovery:
    """Start an empty broker, fill it, stop it and start it again."""
    empty, _ = _start(directory)
    with gateway.launch_managed(directory) as broker:
        _fill(broker, scale)
    answers, memory_mib = _start(directory)
    return Recovery(answers, empty, memory_mib)


def _start(directory: Path) -> tuple[Mapping[str, Answers], int]:
    ports = gateway.free_ports(*gateway.MANAGED)
    with (directory / "output.log").open("ab") as log:
        start = time.perf_counter()
        process = subprocess.Popen(gateway.command(directory, ports), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            with ThreadPoolExecutor(len(ports)) as threads:
                found = {name: threads.submit(_greet, port, GREETINGS[name], start) for name, port in ports.items()}
            return {name: future.result() for name, future in found.items()}, resident_bytes(process.pid) >> 20
        finally:
            stop(process)


def _fill(broker: Broker, scale: float) -> None:
    with connected(broker.ports[AMQP]) as control:
        control.socket.settimeout(TIMEOUT_S)
        control.declare_queues([f"lag.{number}" for number in range(int(QUEUES * scale))])
    fill(broker.ports[AMQP], "lag.0", int(MESSAGES * scale), 100)


def _greet(port: int, greeting: Greeting, start: float) -> Answers:
    """Connect new clients until one is served."""
    answers = Answers()
    while time.perf_counter() - start < TIMEOUT_S:
        began = time.perf_counter()
        try:
            answer = _answer(port, greeting)
        except ConnectionRefusedError:  # the process has not come to its listeners
            answer = b""
        if answer:
            now = time.perf_counter()
            answers.waits_ms.append((now - began) * 1e3)
            answers.first_ms = answers.first_ms or (now - start) * 1e3
            if greeting.served in answer:
                answers.served_ms = (now - start) * 1e3
                return answers
        time.sleep(PAUSE_S)
    raise TimeoutError(f"port {port} served no client within {TIMEOUT_S:.0f} s")


def _answer(port: int, greeting: Greeting) -> bytes:
    """Return the answer to a new client, up to the bytes that identify it."""
    with create_connection(("127.0.0.1", port), TIMEOUT_S) as peer:
        peer.sendall(greeting.request)
        answer = b""
        while not (greeting.served in answer or greeting.not_ready in answer):
            data = peer.recv(4096)
            if not data:
                raise ConnectionError(f"the broker closed the connection of a new client after {answer!r}")
            answer += data
        return answer
