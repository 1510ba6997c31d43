"""The engine on NATS JetStream keeps the contracts of the ports between nodes."""

from collections.abc import Callable

import pytest

from gateway.testing.cluster import (
    BUS_CHECKS,
    LOG_FOLLOWING_CHECKS,
    METADATA_CHECKS,
    QUEUE_LOG_CHECKS,
    ClusterPlace,
)
from tests.jetstream.places import JetStreamPlace

Check = Callable[[ClusterPlace], None]


CHECKS = [*METADATA_CHECKS, *QUEUE_LOG_CHECKS, *LOG_FOLLOWING_CHECKS, *BUS_CHECKS]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_engine_keeps_a_promise(place: JetStreamPlace, check: Check) -> None:
    check(place)
