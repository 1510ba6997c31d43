"""A broker with user guest and without sessions."""

import pytest

from tests.protocols.mqtt.dialogue import Gateway


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()
