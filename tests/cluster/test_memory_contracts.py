"""The engine in memory keeps the contracts of the ports between nodes."""

from collections.abc import Callable

import pytest

from gateway.testing.cluster import (
    BUS_CHECKS,
    METADATA_CHECKS,
    QUEUE_LOG_CHECKS,
    ClusterPlace,
    MemoryClusterPlace,
    check_bus,
    check_metadata,
    check_queue_logs,
)

Check = Callable[[ClusterPlace], None]


@pytest.mark.parametrize("check", [*METADATA_CHECKS, *QUEUE_LOG_CHECKS, *BUS_CHECKS], ids=lambda check: check.__name__)
def test_the_engine_in_memory_keeps_a_promise(check: Check) -> None:
    check(MemoryClusterPlace())


@pytest.mark.parametrize("check", [check_metadata, check_queue_logs, check_bus])
def test_it_keeps_all_of_a_port(check: Callable[[Callable[[], ClusterPlace]], None]) -> None:
    check(MemoryClusterPlace)
