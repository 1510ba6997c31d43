"""The engine in memory keeps the contracts of the ports between nodes."""

from collections.abc import Callable

import pytest

from gateway.testing.cluster import (
    BUS_CHECKS,
    LOG_FOLLOWING_CHECKS,
    METADATA_CHECKS,
    QUEUE_LOG_CHECKS,
    ClusterPlace,
    MemoryClusterPlace,
    check_bus,
    check_log_followings,
    check_metadata,
    check_queue_logs,
)

Check = Callable[[ClusterPlace], None]


CHECKS = [*METADATA_CHECKS, *QUEUE_LOG_CHECKS, *LOG_FOLLOWING_CHECKS, *BUS_CHECKS]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_engine_in_memory_keeps_a_promise(check: Check) -> None:
    check(MemoryClusterPlace())


@pytest.mark.parametrize("check", [check_metadata, check_queue_logs, check_log_followings, check_bus])
def test_it_keeps_all_of_a_port(check: Callable[[Callable[[], ClusterPlace]], None]) -> None:
    check(MemoryClusterPlace)
