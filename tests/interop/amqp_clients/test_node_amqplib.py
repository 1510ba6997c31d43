"""npm's amqplib: every scenario of ``node/amqp.mjs``, each in its own Node.js process."""

import pytest

from tests.interop import node_package
from tests.interop.broker import Broker


@pytest.mark.timeout(node_package.TIMEOUT_S)
@pytest.mark.usefixtures("installed_package")
@pytest.mark.parametrize("sentence", node_package.sentences("amqp.mjs"))
def test_amqplib_works_unchanged(broker: Broker, sentence: str) -> None:
    node_package.check_scenario("amqp.mjs", broker.url, sentence)
