"""A broker with the user guest and nothing else."""

import pytest

from tests.protocols.stomp.dialogue import Gateway


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()
