"""Five thousand clients with persistent sessions reconnect at once and disconnect at once, beside a pinging client."""

import select
import socket
from collections.abc import Sequence
from contextlib import closing
from time import perf_counter, sleep
from typing import Final

from benchmarks.load.client_rig import Lost
from benchmarks.load.drive import STALL_S, Stalled
from benchmarks.load.figure import Figure, at_most
from benchmarks.load.measurement import stopwatch
from benchmarks.load.mqtt import wire
from benchmarks.load.mqtt.client import Client, connected
from benchmarks.load.pings import asking
from benchmarks.load.running import Broker
from benchmarks.load.workloads import MQTT

CLIENTS: Final = 5_000
#: This many messages wait for every fifth client.
EVERY, WAITING = 5, 3
BODY: Final = bytes(100)
#: Sessions created at a time: one by one each would wait for the disk.
AT_A_TIME: Final = 250
#: Seconds until the broker has certainly noticed that all of them disconnected.
LEAVING_S: Final = 3.0
#: Longest permitted wait of another client, in milliseconds.
LONGEST_MS: Final = 250.0


class ReconnectingClient:
    """A reconnecting client: it connects, receives its waiting messages and acknowledges them."""

    def __init__(self, port: int, number: int) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.socket.connect_ex(("127.0.0.1", port))
        self._connect = wire.connect(_client_id(number), is_clean=False)
        topic = _topic(number)
        self._message = wire.publish(topic, BODY, 1)
        self._id_at = wire.identifier_at(topic, BODY, 1)
        self._waiting = WAITING if number % EVERY == 0 else 0
        self._missing = wire.CONNACK_BYTES + self._waiting * len(self._message)
        self._received = b""

    @property
    def is_complete(self) -> bool:
        """Whether everything expected has arrived."""
        return len(self._received) >= self._missing

    def connected(self) -> None:
        """Send CONNECT."""
        self.socket.send(self._connect)

    def read(self) -> None:
        """Read data; acknowledge once everything has arrived."""
        octets = self.socket.recv(4096)
        if not octets:
            raise ConnectionError("the broker closed a connection")
        self._received += octets
        if self.is_complete:
            self._conclude()

    def _conclude(self) -> None:
        """Check that the session was present, with each message once (MQTT-3.1.2-4)."""
        connack, messages = self._received[: wire.CONNACK_BYTES], self._received[wire.CONNACK_BYTES :]
        size, at = len(self._message), self._id_at
        ids = [messages[start + at : start + at + 2] for start in range(0, len(messages), size)]
        expected = b"".join(self._message[:at] + packet_id + self._message[at + 2 :] for packet_id in ids)
        if connack != bytes([wire.CONNACK, 2, 1, 0]) or messages != expected or len(ids) != self._waiting:
            raise Lost(f"a session of {self._waiting} messages came back as {self._received[:16].hex()} ...")
        if ids:
            self.socket.send(wire.acks(wire.PUBACK, b"".join(ids)))


def measure_storm(broker: Broker) -> Sequence[Figure]:
    """Create the sessions, disconnect, publish to some of them, reconnect, disconnect, beside a pinging client."""
    port = broker.ports[MQTT]
    _make_sessions(port)
    _publish(port)
    with connected(port, "bystander") as bystander, asking(bystander.ping) as pings, stopwatch(broker.pid) as watch:
        clients = _reconnect_all(port)
    with connected(port, "bystander") as bystander, asking(bystander.ping) as partings:
        for client in clients:
            client.socket.close()
        sleep(LEAVING_S)
    return [
        at_most("longest wait of another client, ms", pings.longest_ms, LONGEST_MS),
        at_most("and while all of them disconnect, ms", partings.longest_ms, LONGEST_MS),
        Figure("until all have reconnected with their messages, s", f"{watch.wall_s:.1f}"),
        Figure("broker CPU a client, µs", f"{watch.broker_cpu_s * 1e6 / CLIENTS:.0f}"),
    ]


def _make_sessions(port: int) -> None:
    for start in range(0, CLIENTS, AT_A_TIME):
        clients = []
        for number in range(start, start + AT_A_TIME):
            clients.append(Client(port, _client_id(number), is_clean=False))
            clients[-1].send(wire.subscribe(_topic(number), 1))
        for client in clients:
            client.expect(wire.packet(wire.SUBACK, b"\x00\x01\x01"))
            client.close()


def _publish(port: int) -> None:
    with connected(port, "publisher") as publisher:
        ids = wire.identifiers(WAITING)
        for number in range(0, CLIENTS, EVERY):
            messages = (wire.publish(_topic(number), BODY, 1, packet_id) for packet_id in range(1, WAITING + 1))
            publisher.send(b"".join(messages))
            publisher.expect(wire.acks(wire.PUBACK, ids))


def _reconnect_all(port: int) -> Sequence[ReconnectingClient]:
    """Connect all at once, and return when all have received everything."""
    with closing(select.epoll()) as poll:
        clients = {}
        for number in range(CLIENTS):
            client = ReconnectingClient(port, number)
            clients[client.socket.fileno()] = client
            poll.register(client.socket, select.EPOLLOUT)
        absent, heard_at = CLIENTS, perf_counter()
        while absent:
            events = poll.poll(1.0)
            if events:
                heard_at = perf_counter()
            elif perf_counter() - heard_at > STALL_S:
                raise Stalled(f"{absent} of {CLIENTS} clients have not reconnected")
            for descriptor, event in events:
                absent -= _serve(clients[descriptor], event, poll)
    return list(clients.values())


def _serve(client: ReconnectingClient, event: int, poll: select.epoll) -> bool:
    """Process a client's event; return whether it is complete."""
    if event & select.EPOLLOUT:
        poll.modify(client.socket, select.EPOLLIN)
        client.connected()
        return False
    was_back = client.is_complete
    client.read()
    return client.is_complete and not was_back


def _client_id(number: int) -> str:
    return f"storm-{number:04}"


def _topic(number: int) -> str:
    return f"storm/{number:04}/orders"
