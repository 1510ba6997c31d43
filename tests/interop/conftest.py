"""Stock clients against one broker: what every file in this directory shares."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pika
import pytest
from paho.mqtt.enums import MQTTProtocolVersion
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from tests.interop import node_package
from tests.interop.broker import BROKER_URL, Broker
from tests.interop.mqtt_server import SERVER_URL, MqttServer, running_server
from tests.interop.paho_client import VERSIONS, Paho
from tests.interop.pika_client import parameters
from tests.interop.stomp_client import Stomp
from tests.interop.stomp_server import SERVER_URL as STOMP_URL
from tests.interop.stomp_server import StompServer
from tests.interop.stomp_server import running_server as running_stomp_server
from tests.running import running_gateway

#: Every wait in these tests is shorter; this bounds the ones inside a client.
TEST_TIMEOUT_S = 60


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bound every test of this directory in time."""
    for item in items:
        if item.path.parent.name == "interop" and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TEST_TIMEOUT_S))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The gateway, for the whole session, unless GATEWAY_TEST_AMQP_URL names another broker."""
    if BROKER_URL is not None:
        yield Broker.from_url(BROKER_URL)
        return
    with running_gateway(tmp_path_factory.mktemp("gateway")) as gateway:
        yield gateway


@pytest.fixture
def name() -> str:
    """A name for a queue or an exchange which no other test uses."""
    return f"interop-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def connect(broker: Broker) -> Iterator[Callable[..., BlockingConnection]]:
    """Open pika connections; whatever is open when the test ends is closed."""
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
    """A channel on a pika connection of its own."""
    return connect().channel()


@pytest.fixture
def queue(channel: BlockingChannel, name: str) -> str:
    """An exclusive queue of the test's own, empty."""
    channel.queue_declare(name, exclusive=True)
    return name


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MqttServer]:
    """The gateway as a server of MQTT, for the whole session, unless GATEWAY_TEST_MQTT_URL names another one."""
    if SERVER_URL is not None:
        yield MqttServer.from_url(SERVER_URL)
        return
    with running_server(tmp_path_factory.mktemp("server"), "mqtt.sys_interval_s=1") as running:
        yield running


@pytest.fixture
def paho(server: MqttServer) -> Iterator[Callable[..., Paho]]:
    """Make paho clients; whatever is connected when the test ends is disconnected."""
    made: list[Paho] = []

    def make(*arguments: Any, at: MqttServer = server, **options: Any) -> Paho:
        made.append(Paho(at, *arguments, **options))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture(params=list(VERSIONS.values()), ids=list(VERSIONS))
def version(request: pytest.FixtureRequest) -> MQTTProtocolVersion:
    """Each version of MQTT, as paho names it."""
    found: MQTTProtocolVersion = request.param
    return found


@pytest.fixture(scope="session")
def whole_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StompServer]:
    """A gateway with all its protocols, for the whole session."""
    with running_stomp_server(tmp_path_factory.mktemp("whole")) as running:
        yield running


@pytest.fixture(scope="session")
def stomp_server(request: pytest.FixtureRequest) -> StompServer:
    """The gateway as a server of STOMP, unless GATEWAY_TEST_STOMP_URL names another one."""
    if STOMP_URL is not None:
        return StompServer.from_url(STOMP_URL)
    gateway: StompServer = request.getfixturevalue("whole_gateway")
    return gateway


@pytest.fixture
def stomp(stomp_server: StompServer) -> Iterator[Callable[..., Stomp]]:
    """Make stomp.py clients; whatever is connected when the test ends is disconnected."""
    made: list[Stomp] = []

    def make(*arguments: Any, at: StompServer = stomp_server, **options: Any) -> Stomp:
        made.append(Stomp(at, *arguments, **options))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture(scope="session")
def installed_package() -> None:
    """The package of the Node.js clients."""
    node_package.install()
