"""An export of RabbitMQ with shovels and federation is applied whole."""

from pathlib import Path
from typing import Any

import pytest
from twisted.internet.task import Clock

from gateway.bridges.service import BridgeService
from gateway.definitions import apply_definitions, parse_definitions
from gateway.kernel.errors import ConfigurationError
from gateway.testing import MemoryBroker
from gateway_mqtt.translation.topics import REVERSIBLE

EXPORT = Path(__file__).parents[1] / "management/fixtures/rabbitmq-3.10.8-ctl.json"


@pytest.fixture
def broker() -> MemoryBroker:
    broker = MemoryBroker()
    BridgeService(
        broker.kernel,
        Clock(),
        lambda client, is_user: None,
        lambda vhost: REVERSIBLE,
        lambda vhost: "amq.topic",
        lambda: None,
    )
    return broker


def test_parameters_and_policies_of_an_export_take_effect(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    apply_definitions(parse_definitions(EXPORT.read_text(), "f"), broker.kernel, "f")
    kinds: list[Any] = sorted(key[1] for key in broker.kernel.parameters if key[0])
    assert kinds == ["federation-upstream", "shovel"]
    assert not [record for record in caplog.records if record.message == "parameter without effect"]


def test_an_export_with_an_invalid_upstream_changes_nothing(broker: MemoryBroker) -> None:
    invalid = EXPORT.read_text().replace('"uri"', '"url"')
    before = dict(broker.kernel.vhost_by_name)
    with pytest.raises(ConfigurationError, match=r'parameters\[\d+\].*Key "uri" not found'):
        apply_definitions(parse_definitions(invalid, "f"), broker.kernel, "f")
    assert broker.kernel.vhost_by_name == before
    assert not broker.kernel.parameters
