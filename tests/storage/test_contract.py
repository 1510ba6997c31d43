"""Every engine fulfils the contract of the store.

Rules: R129.
"""

from collections.abc import Callable, Sequence

import pytest

from gateway.kernel.journal.store import Store
from gateway.kernel.messages.stored_message import StoredMessage
from gateway.testing.store import STORE_CHECKS, StorePlace, check_store
from gateway_memory import MemoryStore
from tests.storage.places import DeferringPlace, GroupedLmdbPlace, LmdbPlace, MemoryPlace


@pytest.mark.parametrize("new_place", [MemoryPlace, DeferringPlace, LmdbPlace, GroupedLmdbPlace])
@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__.strip("_"))
def test_each_store_keeps_its_contract(
    check: Callable[[StorePlace], None], new_place: Callable[[], StorePlace]
) -> None:
    place = new_place()
    try:
        check(place)
    finally:
        place.close()


def test_a_broken_guarantee_of_an_engine_is_reported() -> None:
    class Reversed(MemoryStore):
        def messages(self, message_ids: Sequence[int]) -> list[StoredMessage | None]:
            return list(reversed(super().messages(message_ids)))

    class ReversedPlace(MemoryPlace):
        def open(self) -> Store:
            committed = self.store.reopened()
            self.store = Reversed()
            self.store.__dict__.update(committed.__dict__)
            return self.store

    with pytest.raises(AssertionError, match="contents differ when they are just staged"):
        check_store(ReversedPlace)
