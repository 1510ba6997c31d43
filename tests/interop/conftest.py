"""Stock clients against one broker: what every file in this directory shares."""

import uuid
from collections.abc import Callable, Iterator

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from tests.interop.broker import BROKER_URL, Broker
from tests.interop.pika_client import parameters
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
