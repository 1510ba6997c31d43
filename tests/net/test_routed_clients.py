"""Clients are led to the leader of the cell that has their virtual host: real clients, and two brokers in memory."""

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pika
import pytest

from gateway.kernel.journal.records.access import PermissionRecord
from gateway.kernel.journal.records.topology import ParameterRecord
from gateway.net.forwarding.passing import ForwardingFactory
from gateway.net.forwarding.routing import ClientOrigin, ClientRoute, Leader
from gateway.net.forwarding.taking import ForwardedFactory
from gateway_amqp.resuming.relayed_connection import RelayedConnection
from gateway_mqtt.resuming.relayed_session import RelayedSession
from gateway_stomp.resuming.relayed_connection import RelayedStompConnection
from tests.net.forwarding_nodes import SECRET, ForwardingNodes, leader_at
from tests.net.test_resumed_clients import BrokerFactory
from tests.protocols.mqtt.packets import Writer

#: The default virtual host is in the first cell, another one in the second.
CELLS = {"/": 1, "second": 2}


class Map:
    """The cells as a node knows them."""

    cells = (1, 2)

    def __init__(self) -> None:
        self.global_parameters: dict[tuple[Any, ...], ParameterRecord] = {}

    def cell_of(self, vhost: str) -> int | None:
        return CELLS.get(vhost)


class Cells(ForwardingNodes):
    """A node that leads no cell, and the leaders of two. ``addresses`` are those of the leaders that are known."""

    def __init__(self) -> None:
        super().__init__()
        self.brokers = {1: BrokerFactory(), 2: BrokerFactory()}
        broker = self.brokers[2].gateway.broker
        broker.declare_vhost("second")
        broker.directory.put_permission(PermissionRecord("second", "guest", ".*", ".*", ".*"))
        self.brokers[2].gateway.settle()
        self.addresses: dict[int, tuple[str, int] | None] = {}
        for cell, broker in self.brokers.items():
            taking = ForwardedFactory(SECRET, self._served_by(cell, broker), self.clock)
            taking.leads = lambda: True
            self.addresses[cell] = "127.0.0.1", self.listen(taking)
        self.epochs = {1: 1, 2: 1}
        self.follower = ForwardingFactory(
            "amqp",
            SECRET,
            self._leader,
            self.loop.reactor,
            self.clock,
            self.counts,
            "c",
            RelayedConnection,
            directions=Map(),
        )
        self.port = self.listen(self.follower)

    def _served_by(self, cell: int, broker: BrokerFactory) -> Callable[[int], Mapping[str, Any]]:
        return lambda asked: {"amqp": broker} if asked == cell else {}

    def _leader(self, cell: int) -> Leader | None:
        return leader_at(self.addresses[cell], self.epochs[cell], cell=cell)

    def opening(self, vhost: str) -> list[str]:
        """Connect with pika, and declare a queue; return a list that gets the error, or empty text."""
        outcome: list[str] = []

        def work() -> None:
            try:
                connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.port, vhost))
                connection.channel().queue_declare("declared", durable=True)
                connection.close()
                outcome.append("")
            except BaseException as error:
                outcome.append(f"{type(error).__name__} {error}")

        threading.Thread(target=work, daemon=True).start()
        return outcome

    def open(self, vhost: str) -> str:
        """Connect, and return the error."""
        outcome = self.opening(vhost)
        self.until(lambda: self._settle() or outcome, 30.0)
        return outcome[0]

    def _settle(self) -> None:
        for broker in self.brokers.values():
            broker.gateway.settle()

    def has_declared(self, cell: int, vhost: str) -> bool:
        """Whether the broker of a cell has the queue that clients declare."""
        found = self.brokers[cell].gateway.broker.vhost_by_name.get(vhost)
        return found is not None and "declared" in found.queue_by_name


@pytest.fixture
def cells() -> Iterator[Cells]:
    nodes = Cells()
    yield nodes
    nodes.close()


def test_a_client_is_served_by_the_leader_of_its_virtual_host(cells: Cells) -> None:
    assert cells.open("/") == ""
    assert cells.open("second") == ""
    assert cells.has_declared(1, "/")
    assert cells.has_declared(2, "second")
    assert not cells.has_declared(2, "/")
    cells.until(lambda: not cells.follower.linked)
    assert cells.counts.resumed == 0


def test_an_unknown_virtual_host_is_refused_by_a_leader(cells: Cells) -> None:
    assert "530" in cells.open("missing")


def test_clients_of_a_cell_log_in_while_the_first_one_has_no_leader(cells: Cells) -> None:
    first, cells.addresses[1] = cells.addresses[1], None
    assert cells.open("second") == ""
    waiting = cells.opening("/")
    cells.until(lambda: cells.counts.waiting == 1)
    assert not waiting
    cells.addresses[1] = first
    cells.until(lambda: cells._settle() or waiting, 30.0)
    assert waiting == [""]


def test_a_client_waits_for_the_leader_of_its_virtual_host(cells: Cells) -> None:
    second, cells.addresses[2] = cells.addresses[2], None
    waiting = cells.opening("second")
    cells.until(lambda: cells.counts.waiting == 1)
    cells.addresses[2] = second
    cells.until(lambda: cells._settle() or waiting, 30.0)
    assert waiting == [""]


def test_another_leader_of_one_cell_ends_no_client_of_the_other(cells: Cells) -> None:
    client = cells.connect()
    client.send(b"AMQP\x00\x00\x09\x01")
    cells.until(lambda: cells.follower.linked)
    cells.epochs[2] = 2
    assert cells.open("second") == ""
    cells.until(lambda: len(cells.follower.linked) == 1)
    assert [leader.cell for leader in cells.follower.linked.values()] == [1]
    cells.epochs[1] = 2
    cells.until(lambda: not cells.follower.linked)


# ---- MQTT and STOMP: nothing is sent before the virtual host is known ------------------------------------------------


def _route(**mapped: str) -> ClientRoute:
    found = Map()
    if mapped:
        record = ParameterRecord("", "", "mqtt_port_to_vhost_mapping", dict(mapped))
        found.global_parameters[record.key] = record
    return ClientRoute(found, ClientOrigin("192.0.2.1", 1883))


@pytest.mark.parametrize(
    ("username", "mapped", "is_rerouted"),
    [("second:guest", {}, True), ("guest", {}, False), ("guest", {"1883": "second"}, True), ("nope:guest", {}, False)],
)
@pytest.mark.parametrize("cut", [1, 5, 1000])
def test_an_mqtt_client_is_rerouted_before_its_connect_is_sent(
    username: str, mapped: dict[str, str], cut: int, *, is_rerouted: bool
) -> None:
    session = RelayedSession()
    session.route = _route(**mapped)
    connect = Writer(5).connect("c", username=username, password=b"guest") + Writer(5).subscribe(("a", 1))
    for at in range(0, len(connect), cut):
        session.receive_from_client(connect[at : at + cut])
    assert session.is_rerouted is is_rerouted
    assert session.route.cell == (2 if is_rerouted else 1)
    session.leader_found()
    assert session.waiting.take_for_leader() == connect


@pytest.mark.parametrize(
    ("headers", "activemq", "is_rerouted"),
    [
        ("host:second", False, True),
        ("host:/", False, False),
        ("host:missing", False, False),
        ("host:missing", True, True),
        ("login:guest", False, True),
    ],
)
def test_a_stomp_client_is_rerouted_before_its_connect_is_sent(
    headers: str, *, activemq: bool, is_rerouted: bool
) -> None:
    relayed = RelayedStompConnection(default_vhost="second", activemq=activemq)
    relayed.route = _route()
    connect = f"CONNECT\naccept-version:1.2\n{headers}\n\n\0SUBSCRIBE\nid:1\ndestination:/queue/q\n\n\0".encode()
    relayed.receive_from_client(connect)
    assert relayed.is_rerouted is is_rerouted
    relayed.leader_found()
    assert relayed.waiting.take_for_leader() == connect


def test_a_route_tries_other_cells_until_the_virtual_host_is_known() -> None:
    route = _route()
    route.try_next()
    assert route.cell == 2
    route.try_next()
    assert route.cell == 1
    assert not route.leads_to("second")
    route.try_next()
    assert route.cell == 2
