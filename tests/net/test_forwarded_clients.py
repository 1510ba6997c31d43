"""Clients of a follower when something is slow, ends or is gone: bounded memory, all bytes before an end."""

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pika
import pytest
from twisted.internet.protocol import Factory

from gateway.net.forwarding import passing
from gateway_amqp.server import AmqpServer
from tests.net.forwarding_nodes import ForwardingNodes
from tests.protocols.amqp.dialogue import Gateway

#: More than all buffers of systems and transports on the way.
MUCH = 24 * 2**20


@pytest.fixture
def nodes() -> Iterator[ForwardingNodes]:
    nodes = ForwardingNodes()
    yield nodes
    nodes.close()


def pattern(size: int) -> bytes:
    """Return bytes that do not repeat."""
    return Random(1).randbytes(size)


def buffered(transport: Any) -> int:
    """Return the number of bytes in a transport's buffer."""
    return len(transport.dataBuffer) - transport.offset + transport._tempDataLen


def test_much_from_a_client_to_a_slow_leader_stops_the_reading_of_the_client(nodes: ForwardingNodes) -> None:
    client, served = nodes.linked()
    served.line.pauseProducing()
    data = pattern(MUCH)
    sent = most = 0
    quiet = 0
    while quiet < 20:
        try:
            step = client.send(data[sent : sent + 262_144])
        except BlockingIOError:
            step = 0
        sent += step
        quiet = 0 if step else quiet + 1
        nodes.loop.turn()
        most = max(most, *(buffered(client.other.transport) for client in nodes.follower.linked))
    assert sent < MUCH, "nothing stopped the client"
    assert most <= 256 * 1024
    served.line.resumeProducing()
    while sent < MUCH:
        try:
            sent += client.send(data[sent : sent + 262_144])
        except BlockingIOError:
            nodes.loop.turn()
    nodes.until(lambda: len(served.received) == MUCH)
    assert served.received == data


def test_much_from_the_leader_to_a_slow_client_stops_the_leader(nodes: ForwardingNodes) -> None:
    client, served = nodes.linked(buffer=65_536)
    data = pattern(MUCH)

    class Source:
        """A producer that knows whether it may go on."""

        is_paused = False
        sent = 0

        def pauseProducing(self) -> None:
            self.is_paused = True

        def resumeProducing(self) -> None:
            self.is_paused = False

        def stopProducing(self) -> None:
            self.is_paused = True

    source = Source()
    served.line.registerProducer(source, True)
    received = bytearray()
    quiet, most = 0, 0
    while quiet < 20:
        quiet += 1
        while not source.is_paused and source.sent < MUCH:
            served.line.write(data[source.sent : source.sent + 65_536])
            source.sent = min(MUCH, source.sent + 65_536)
            quiet = 0
        nodes.loop.turn()
        most = max(most, *(buffered(client.transport) for client in nodes.follower.linked))
    assert source.sent < MUCH, "nothing stopped the leader"
    assert most <= 256 * 1024
    for piece in nodes.received(client):
        received += piece
        while not source.is_paused and source.sent < MUCH:
            served.line.write(data[source.sent : source.sent + 65_536])
            source.sent = min(MUCH, source.sent + 65_536)
        if len(received) == MUCH:
            break
    assert received == data


def test_the_end_of_the_client_is_the_end_at_the_leader_after_all_bytes(nodes: ForwardingNodes) -> None:
    client, served = nodes.linked()
    client.send(pattern(100_000))
    client.close()
    nodes.until(lambda: served.lost)
    assert served.received == pattern(100_000)
    nodes.until(lambda: nodes.counts.open == 0)


def test_the_end_of_the_leader_is_the_end_at_the_client_after_all_bytes(nodes: ForwardingNodes) -> None:
    client, served = nodes.linked()
    served.line.write(pattern(400_000))
    served.line.loseConnection()
    assert nodes.receive_all(client) == pattern(400_000)
    client.close()
    nodes.until(lambda: nodes.counts.open == 0)


def test_a_leader_that_ends_its_half_still_gets_the_rest_of_the_client(nodes: ForwardingNodes) -> None:
    client, served = nodes.linked()
    served.line.write(b"bye")
    served.line.loseWriteConnection()
    assert nodes.receive_all(client) == b"bye"
    client.send(b"so long")
    nodes.until(lambda: served.received == b"so long")
    client.close()
    nodes.until(lambda: served.lost)


def test_a_client_that_ends_its_half_still_gets_the_rest(nodes: ForwardingNodes) -> None:
    client, served = nodes.linked()
    client.send(b"last words")
    client.shutdown(socket.SHUT_WR)
    nodes.until(lambda: served.lost)  # this one closes at the end of its input, as all protocols of the broker do
    assert nodes.receive_all(client) == b""
    nodes.until(lambda: nodes.counts.open == 0)


def test_a_broken_connection_breaks_the_other_one(nodes: ForwardingNodes) -> None:
    client, served = nodes.linked()
    served.line.abortConnection()
    assert nodes.receive_all(client) == b""
    client, served = nodes.linked()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.close()
    nodes.until(lambda: served.lost)
    nodes.until(lambda: nodes.counts.open == 0)


def test_a_client_is_held_while_the_leader_does_not_serve_yet(nodes: ForwardingNodes) -> None:
    served, nodes.served = nodes.served, {}
    client = nodes.connect()
    client.send(b"early")
    begun = time.monotonic()
    nodes.until(lambda: time.monotonic() - begun > 0.6)
    nodes.served = served
    nodes.until(lambda: nodes.listener.clients and nodes.listener.clients[0].received == b"early")


def test_a_client_is_held_while_the_leader_cannot_be_reached(nodes: ForwardingNodes) -> None:
    address, free = nodes.address, socket.socket()
    free.bind(("127.0.0.1", 0))
    nodes.address = free.getsockname()
    nodes.connect().send(b"early")
    nodes.until(lambda: nodes.counts.waiting == 1)
    nodes.address = address
    nodes.until(lambda: nodes.listener.clients and nodes.listener.clients[0].received == b"early")
    free.close()


def test_many_clients_that_waited_are_served_soon_and_not_all_at_once(
    nodes: ForwardingNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, nodes.address = nodes.address, None
    clients = [nodes.connect() for _ in range(200)]
    nodes.until(lambda: nodes.counts.waiting == 200)
    served, nodes.served = nodes.served, {}
    asked: list[object] = []
    monkeypatch.setattr(nodes.leader, "buildProtocol", lambda address: asked.append(address))
    nodes.address = address
    begun = time.monotonic()
    nodes.until(lambda: time.monotonic() - begun > 0.6)
    assert 64 <= len(asked) <= 4 * 64, "a leader that does not serve yet is asked too often"
    monkeypatch.undo()
    nodes.served = served
    nodes.until(lambda: len(nodes.listener.clients) == 200)
    clients[77].send(b"77")
    nodes.until(lambda: sum(client.received == b"77" for client in nodes.listener.clients) == 1)


def test_no_more_clients_wait_than_may(nodes: ForwardingNodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passing, "MOST_WAITING", 2)
    nodes.address = None
    for _ in range(2):
        nodes.connect()
    nodes.until(lambda: nodes.counts.waiting == 2)
    assert nodes.receive_all(nodes.connect()) == b""
    assert nodes.counts.expired == 1


def test_a_client_does_not_stay_with_a_leader_that_was_stopped_before_it_answered(nodes: ForwardingNodes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stopped:  # its system accepts, and nothing answers
        address, nodes.address = nodes.address, stopped.getsockname()
        nodes.connect().send(b"early")
        nodes.until(lambda: nodes.counts.waiting == 1)
        nodes.address = address
        nodes.until(lambda: nodes.listener.clients and nodes.listener.clients[0].received == b"early")


def test_connections_to_a_former_leader_are_closed_when_there_is_another(nodes: ForwardingNodes) -> None:
    client, served = nodes.linked()
    nodes.address = None
    begun = time.monotonic()
    nodes.until(lambda: time.monotonic() - begun > 0.6)
    assert nodes.counts.open == 1, "a connection was closed while no leader was known"
    nodes.address = ("127.0.0.1", nodes.listen(nodes.leader))
    assert nodes.receive_all(client) == b""
    nodes.until(lambda: served.lost)
    _, again = nodes.linked()
    assert again.lost is None


class BrokerFactory(Factory):
    """A listener of a broker in memory."""

    noisy = False

    def __init__(self) -> None:
        self.gateway = Gateway()

    def buildProtocol(self, addr: object) -> AmqpServer:
        return AmqpServer(self.gateway.settings, self.gateway.turn)


def in_thread(nodes: ForwardingNodes, gateway: Gateway, work: Callable[[], None]) -> None:
    """Do the work of a blocking client in a thread, while the broker works."""
    errors: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()

    def is_done() -> bool:
        gateway.settle()
        return not thread.is_alive()

    nodes.until(is_done, 30.0)
    if errors:
        raise errors[0]


def test_a_broker_serves_amqp_and_sees_the_client(nodes: ForwardingNodes) -> None:
    listener = BrokerFactory()
    gateway = listener.gateway
    nodes.served = {"amqp": listener}
    body = pattern(300_000)
    seen: list[tuple[str, int]] = []
    local: list[tuple[str, int]] = []

    def work() -> None:
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", nodes.port))
        local.append(connection._impl._transport._sock.getsockname())
        seen.extend((each.info().peer_host, each.info().peer_port) for each in gateway.broker.connections)
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("orders")
        for _ in range(20):
            channel.basic_publish("", "orders", body)
        for _ in range(20):
            assert channel.basic_get("orders", auto_ack=True)[2] == body
        connection.close()

    in_thread(nodes, gateway, work)
    assert seen == local
    nodes.until(lambda: nodes.counts.open == 0)
    nodes.until(lambda: len(gateway.broker.connections) == 0)


def test_refused_nodes_are_logged_once_a_minute(
    nodes: ForwardingNodes, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.root.manager, "disable", logging.NOTSET)  # a session of fuzzing switches logs off
    caplog.set_level(logging.INFO)
    for _ in range(3):
        peer = nodes.connect(nodes.internal)
        peer.send(b"GATEWAY-FORWARD/1 0000000000000000 amqp\r\n")
        with pytest.raises(ConnectionResetError):
            nodes.receive_all(peer)
    assert [record.getMessage() for record in caplog.records].count("forwarded connection refused") == 1
    assert nodes.listener.clients == []
