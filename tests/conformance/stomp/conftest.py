"""A broker of which nothing is known yet but its user guest."""

import pytest

from tests.conformance.stomp.dialogue import Gateway


@pytest.fixture
def gateway() -> Gateway:
    return Gateway()
