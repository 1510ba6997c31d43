"""Every row of behaviour is played for each protocol that can express it."""

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from tests.behaviour.edges import AmqpEdge, Edge, Stage
from tests.behaviour.mqtt_edge import MqttEdge
from tests.behaviour.stomp_edge import StompEdge
from tests.behaviour.unsayable import UNSAYABLE
from tests.scenarios.all_protocols_broker import AllProtocolsBroker

EDGES: Final[Mapping[str, Callable[[AllProtocolsBroker], Edge]]] = {
    "AMQP": AmqpEdge,
    "MQTT": MqttEdge,
    "STOMP": StompEdge,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Play a test once for each protocol that can say what it says."""
    if "stage" in metafunc.fixturenames:
        name = metafunc.function.__name__
        columns = [edge for edge in EDGES if name not in UNSAYABLE.get(edge, ())]
        metafunc.parametrize("stage", columns, indirect=True)


@pytest.fixture
def stage(request: pytest.FixtureRequest) -> Stage:
    return Stage(EDGES[request.param])
