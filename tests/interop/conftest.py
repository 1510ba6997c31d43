"""Fixtures for tests of stock clients against a broker."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pika
import pytest
from paho.mqtt.enums import MQTTProtocolVersion
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from tests.interop import node_package
from tests.interop.amqp_clients.pika_client import parameters
from tests.interop.broker import BROKER_URL, Broker
from tests.interop.gateways import ON_A_CLUSTER, running_gateway
from tests.interop.mqtt_clients.mqtt_server import SERVER_URL, MqttServer, running_server
from tests.interop.mqtt_clients.paho_client import VERSIONS, Paho
from tests.interop.one_node import is_about_one_node
from tests.interop.stomp_clients.stomp_client import Stomp
from tests.interop.stomp_clients.stomp_server import SERVER_URL as STOMP_URL
from tests.interop.stomp_clients.stomp_server import StompServer
from tests.interop.stomp_clients.stomp_server import running_server as running_stomp_server

#: The limit of each test; waits in the tests are shorter, so it matters only inside clients.
TEST_TIMEOUT_S = 60


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Limit the time of every test in this directory; leave out those about one node when there are several."""
    for item in items:
        if item.path.parent.name == "interop" and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TEST_TIMEOUT_S))
    if ON_A_CLUSTER:
        left_out = [item for item in items if is_about_one_node(item.nodeid)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Run a gateway for the session, unless GATEWAY_TEST_AMQP_URL names another broker."""
    if BROKER_URL is not None:
        yield Broker.from_url(BROKER_URL)
        return
    with running_gateway(tmp_path_factory.mktemp("gateway")) as gateway:
        yield gateway


@pytest.fixture
def name() -> str:
    """Return a unique name for a queue or an exchange."""
    return f"interop-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def connect(broker: Broker) -> Iterator[Callable[..., BlockingConnection]]:
    """Open pika connections; those that are open when the test ends are closed."""
    opened: list[BlockingConnection] = []

    def open_connection(**overrides: object) -> BlockingConnection:
        opened.append(pika.BlockingConnection(parameters(broker, **overrides)))
        return opened[-1]

    yield open_connection
    for connection in opened:
        if connection.is_open:
            connection.close()


@pytest.fixture
def channel(connect: Callable[..., BlockingConnection]) -> BlockingChannel:
    """Return a channel on a separate pika connection."""
    return connect().channel()


@pytest.fixture
def queue(channel: BlockingChannel, name: str) -> str:
    """Declare an exclusive, empty queue."""
    channel.queue_declare(name, exclusive=True)
    return name


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MqttServer]:
    """Run a gateway as an MQTT server for the session, unless GATEWAY_TEST_MQTT_URL names another one."""
    if SERVER_URL is not None:
        yield MqttServer.from_url(SERVER_URL)
        return
    with running_server(tmp_path_factory.mktemp("server"), "mqtt.sys_interval_s=1") as running:
        yield running


@pytest.fixture
def paho(server: MqttServer) -> Iterator[Callable[..., Paho]]:
    """Create paho clients; those that are connected when the test ends are disconnected."""
    made: list[Paho] = []

    def make(*arguments: Any, at: MqttServer = server, **options: Any) -> Paho:
        made.append(Paho(at, *arguments, **options))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture(params=list(VERSIONS.values()), ids=list(VERSIONS))
def version(request: pytest.FixtureRequest) -> MQTTProtocolVersion:
    """Return each version of MQTT, as a paho constant."""
    found: MQTTProtocolVersion = request.param
    return found


@pytest.fixture(scope="session")
def whole_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StompServer]:
    """Run a gateway with all its protocols for the session."""
    with running_stomp_server(tmp_path_factory.mktemp("whole")) as running:
        yield running


@pytest.fixture(scope="session")
def stomp_server(request: pytest.FixtureRequest) -> StompServer:
    """Return the gateway as a STOMP server, unless GATEWAY_TEST_STOMP_URL names another one."""
    if STOMP_URL is not None:
        return StompServer.from_url(STOMP_URL)
    gateway: StompServer = request.getfixturevalue("whole_gateway")
    return gateway


@pytest.fixture
def stomp(stomp_server: StompServer) -> Iterator[Callable[..., Stomp]]:
    """Create stomp.py clients; those that are connected when the test ends are disconnected."""
    made: list[Stomp] = []

    def make(*arguments: Any, at: StompServer = stomp_server, **options: Any) -> Stomp:
        made.append(Stomp(at, *arguments, **options))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture(scope="session")
def installed_package() -> None:
    """Install the package of the Node.js clients."""
    node_package.install()
