"""The LMDB store fulfils the contract of stores on a simulated disk, where a crash is a loss of power."""

from collections.abc import Callable

import pytest

from gateway.testing.store import STORE_CHECKS, StorePlace
from tests.simulation.disk.small_world import SimulatedPlace


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__.strip("_"))
def test_the_store_on_a_simulated_disk_keeps_its_contract(check: Callable[[StorePlace], None]) -> None:
    for seed in range(3):
        place = SimulatedPlace(seed)
        try:
            check(place)
        finally:
            place.close()
