"""The product name in AMQP's server properties and STOMP's server header: one setting for both."""

import pytest

from gateway.config import Settings
from gateway.config.settings import Amqp
from gateway.node.protocols.stomp import stomp_context
from gateway.version import VERSION
from tests.protocols.stomp.dialogue import Gateway

TOLD = [
    pytest.param(Amqp(), "RabbitMQ/3.10.8", id="default"),
    pytest.param(Amqp(product="gateway", product_version="9.9"), "gateway/9.9", id="set"),
]


@pytest.mark.parametrize(("amqp", "named"), TOLD)
def test_the_server_header_of_stomp_names_the_product_and_then_the_gateway(amqp: Amqp, named: str) -> None:
    gateway = Gateway()
    settings = stomp_context(Settings(amqp=amqp), gateway.broker, gateway.settings.access_of, gateway.settings.login)
    assert settings.server == f"{named} (gateway/{VERSION})"
