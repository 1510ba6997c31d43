"""Every row of behaviour is played for each protocol there is."""

import pytest

from tests.behaviour.edges import EDGES, Stage


@pytest.fixture(params=EDGES, ids=str)
def stage(request: pytest.FixtureRequest) -> Stage:
    return Stage(EDGES[request.param])
