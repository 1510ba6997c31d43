"""Behaviour tests run once for each protocol that supports them."""

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from tests.behaviour.mqtt_client import MqttClient
from tests.behaviour.scenario import AmqpClient, ProtocolClient, Scenario
from tests.behaviour.stomp_client import StompClient
from tests.behaviour.unsupported import UNSUPPORTED
from tests.clocks import TickingClock
from tests.protocols.amqp.dialogue import Gateway
from tests.scenarios.all_protocols_broker import AllProtocolsBroker
from tests.step_store import StepStore

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


# Work that takes several turns


@pytest.fixture
def clock() -> TickingClock:
    return TickingClock()


@pytest.fixture
def store() -> StepStore:
    return StepStore()


@pytest.fixture
def gateway(clock: TickingClock, store: StepStore) -> Gateway:
    return Gateway(clock=clock, store=store)
