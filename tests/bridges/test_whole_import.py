"""An export of RabbitMQ with shovels and federation is applied whole."""

import json
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.task import Clock

from gateway.bridges.service import BridgeService
from gateway.definitions import apply_definitions, parse_definitions
from gateway.kernel.errors import ConfigurationError
from gateway.testing import MemoryBroker
from gateway_mqtt.translation.topics import REVERSIBLE

FIXTURES = Path(__file__).parents[1] / "management/fixtures"

#: Exports of ``rabbitmqctl`` and of the HTTP API, with the components of their parameters.
EXPORTS = {
    "rabbitmq-3.10.8-ctl.json": ["federation-upstream", "shovel"],
    "rabbitmq-3.10.8-bridges-ctl.json": ["federation-upstream"] * 2 + ["shovel"] * 2,
    "rabbitmq-3.10.8-bridges.json": ["federation-upstream"] * 2 + ["federation-upstream-set"] + ["shovel"] * 2,
}


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


@pytest.mark.parametrize("export", EXPORTS)
def test_parameters_and_policies_of_an_export_take_effect(
    broker: MemoryBroker, caplog: pytest.LogCaptureFixture, export: str
) -> None:
    text = (FIXTURES / export).read_text()
    apply_definitions(parse_definitions(text, "f"), broker.kernel, "f")
    kinds: list[Any] = sorted(key[1] for key in broker.kernel.parameters if key[0])
    assert kinds == EXPORTS[export]
    vhost = broker.kernel.vhost_by_name["shop"]
    for exchange in json.loads(text)["exchanges"]:
        assert vhost.exchange_by_name[exchange["name"]].type_name == exchange["type"]
    assert not [record for record in caplog.records if record.message == "parameter without effect"]


@pytest.mark.parametrize("export", EXPORTS)
def test_an_export_with_an_invalid_upstream_changes_nothing(broker: MemoryBroker, export: str) -> None:
    invalid = (FIXTURES / export).read_text().replace('"uri"', '"url"')
    before = dict(broker.kernel.vhost_by_name)
    with pytest.raises(ConfigurationError, match=r'parameters\[\d+\].*Key "uri" not found'):
        apply_definitions(parse_definitions(invalid, "f"), broker.kernel, "f")
    assert broker.kernel.vhost_by_name == before
    assert not broker.kernel.parameters
