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
def house() -> AllProtocolsBroker:
    house = AllProtocolsBroker()
    house.put_user(USER, USER, "management")
    return house


def amqp(house: AllProtocolsBroker) -> Callable[[], list[str]]:
    peer = Peer(house._door)  # type: ignore[arg-type]  # all that a peer asks of its gateway
    peer.open(user=USER, password=USER)
    peer.send(commands.Channel.Open()).hear()
    return peer.hear


def stomp(house: AllProtocolsBroker) -> Callable[[], list[str]]:
    client = StompClient(house._stomp_door)  # type: ignore[arg-type]  # all that it asks of its gateway
    client.connect(login=USER, passcode=USER)
    return lambda: [f"{frame.verb} {frame.body.decode()}{frame.headers.get('message', '')}" for frame in client.hear()]


def mqtt(house: AllProtocolsBroker) -> Callable[[], list[str]]:
    return house.client("c", username=USER, password=USER.encode()).hear


CONNECTIONS = {"AMQP": amqp, "STOMP": stomp, "MQTT": mqtt}


@pytest.mark.parametrize("protocol", CONNECTIONS)
def test_the_connections_of_a_deleted_user_are_closed_with_the_reason(house: AllProtocolsBroker, protocol: str) -> None:
    hear = CONNECTIONS[protocol](house)
    assert hear() == []
    assert house.broker.connections.count_of(USER) == 1
    house.broker.directory.remove_user(USER)
    heard = hear()
    assert heard, "the client must receive the reason"
    assert protocol == "MQTT" or any(SAID in line for line in heard), heard


def test_connections_of_other_users_stay_open(house: AllProtocolsBroker) -> None:
    guest = house.peer()
    house.broker.directory.remove_user(USER)
    assert guest.hear() == []
    assert guest.send(commands.Queue.Declare(0, "q")).hear() != []


def test_a_deleted_user_cannot_log_in_again(house: AllProtocolsBroker) -> None:
    console = Console(house._door)  # type: ignore[arg-type]  # all that it asks of its gateway
    assert console.ask("GET", "/whoami", user=USER).status == 200
    house.broker.directory.remove_user(USER)
    assert console.ask("GET", "/whoami", user=USER).status == 401
    client = StompClient(house._stomp_door)  # type: ignore[arg-type]  # all that it asks of its gateway
    assert [frame.verb for frame in client.connect(login=USER, passcode=USER)] == ["ERROR", "closed"]
    assert "CONNACK" not in house.stranger().connect("c", username=USER, password=USER.encode())


def test_the_next_operation_of_a_user_without_access_to_the_vhost_is_refused(house: AllProtocolsBroker) -> None:
    peer = Peer(house._door)  # type: ignore[arg-type]  # all that a peer asks of its gateway
    peer.open(user=USER, password=USER)
    peer.send(commands.Channel.Open()).hear()
    client = StompClient(house._stomp_door)  # type: ignore[arg-type]  # all that it asks of its gateway
    client.connect(login=USER, passcode=USER)
    sensor = house.client("c", username=USER, password=USER.encode())
    house.broker.directory.remove_permission("/", USER)
    (refused,) = peer.send(commands.Queue.Declare(0, "q")).hear()
    assert "403 ACCESS_REFUSED" in refused
    assert "ERROR" in [frame.verb for frame in client.send("/topic/t")]
    assert "87" in " ".join(sensor.subscribe("t", 1))
