"""Behaviour tests run once for each protocol that supports them."""

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from tests.behaviour.mqtt_client import MqttClient
from tests.behaviour.scenario import AmqpClient, ProtocolClient, Scenario
from tests.behaviour.stomp_client import StompClient
from tests.behaviour.unsupported import UNSUPPORTED
from tests.scenarios.all_protocols_broker import AllProtocolsBroker

CLIENTS: Final[Mapping[str, Callable[[AllProtocolsBroker], ProtocolClient]]] = {
    "AMQP": AmqpClient,
    "MQTT": MqttClient,
    "STOMP": StompClient,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each protocol that supports it."""
    if "scenario" in metafunc.fixturenames:
        name = metafunc.function.__name__
        protocols = [protocol for protocol in CLIENTS if name not in UNSUPPORTED.get(protocol, ())]
        metafunc.parametrize("scenario", protocols, indirect=True)


@pytest.fixture
def scenario(request: pytest.FixtureRequest) -> Scenario:
    return Scenario(CLIENTS[request.param])
