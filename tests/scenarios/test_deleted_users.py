"""Connections of a user that is deleted, or loses access to its virtual host, are closed at once, in each protocol."""

from collections.abc import Callable

import pytest
from pamqp import commands

from tests.management.console import Console
from tests.protocols.amqp.dialogue import Peer
from tests.protocols.stomp.dialogue import Client as StompClient
from tests.scenarios.all_protocols_broker import AllProtocolsBroker
from tests.scenarios.permission_matrix import USER

SAID = f"user '{USER}' is deleted"


@pytest.fixture
def gateway() -> AllProtocolsBroker:
    gateway = AllProtocolsBroker()
    gateway.put_user(USER, USER, "management")
    return gateway


def amqp(gateway: AllProtocolsBroker) -> Callable[[], list[str]]:
    peer = Peer(gateway._door)  # type: ignore[arg-type]  # all that a peer asks of its gateway
    peer.open(user=USER, password=USER)
    peer.send(commands.Channel.Open()).receive()
    return peer.receive


def stomp(gateway: AllProtocolsBroker) -> Callable[[], list[str]]:
    client = StompClient(gateway._stomp_door)  # type: ignore[arg-type]  # all that it asks of its gateway
    client.connect(login=USER, passcode=USER)
    return lambda: [
        f"{frame.verb} {frame.body.decode()}{frame.headers.get('message', '')}" for frame in client.receive_frames()
    ]


def mqtt(gateway: AllProtocolsBroker) -> Callable[[], list[str]]:
    return gateway.client("c", username=USER, password=USER.encode()).receive


CONNECTIONS = {"AMQP": amqp, "STOMP": stomp, "MQTT": mqtt}


@pytest.mark.parametrize("protocol", CONNECTIONS)
def test_connections_of_a_deleted_user_are_closed_with_a_reason(gateway: AllProtocolsBroker, protocol: str) -> None:
    receive = CONNECTIONS[protocol](gateway)
    assert receive() == []
    assert gateway.broker.connections.count_of(USER) == 1
    gateway.broker.directory.remove_user(USER)
    received = receive()
    assert received, "the client must receive the reason"
    assert protocol == "MQTT" or any(SAID in line for line in received), received


def test_connections_of_other_users_stay_open(gateway: AllProtocolsBroker) -> None:
    guest = gateway.peer()
    gateway.broker.directory.remove_user(USER)
    assert guest.receive() == []
    assert guest.send(commands.Queue.Declare(0, "q")).receive() != []


def test_a_deleted_user_cannot_log_in_again(gateway: AllProtocolsBroker) -> None:
    console = Console(gateway._door)  # type: ignore[arg-type]  # all that it asks of its gateway
    assert console.ask("GET", "/whoami", user=USER).status == 200
    gateway.broker.directory.remove_user(USER)
    assert console.ask("GET", "/whoami", user=USER).status == 401
    client = StompClient(gateway._stomp_door)  # type: ignore[arg-type]  # all that it asks of its gateway
    assert [frame.verb for frame in client.connect(login=USER, passcode=USER)] == ["ERROR", "closed"]
    assert "CONNACK" not in gateway.new_client().connect("c", username=USER, password=USER.encode())


def test_the_next_operation_of_a_user_without_access_to_the_vhost_is_refused(gateway: AllProtocolsBroker) -> None:
    peer = Peer(gateway._door)  # type: ignore[arg-type]  # all that a peer asks of its gateway
    peer.open(user=USER, password=USER)
    peer.send(commands.Channel.Open()).receive()
    client = StompClient(gateway._stomp_door)  # type: ignore[arg-type]  # all that it asks of its gateway
    client.connect(login=USER, passcode=USER)
    sensor = gateway.client("c", username=USER, password=USER.encode())
    gateway.broker.directory.remove_permission("/", USER)
    (refused,) = peer.send(commands.Queue.Declare(0, "q")).receive()
    assert "403 ACCESS_REFUSED" in refused
    assert "ERROR" in [frame.verb for frame in client.publish("/topic/t")]
    assert "87" in " ".join(sensor.subscribe("t", 1))
