"""The watch over a leader's lease: publishers are blocked before the leader has to stop."""

from collections.abc import Callable
from typing import Final

from gateway.cluster.leadership.timing import TICK_S
from gateway.cluster.replication.replicated_store import ReplicatedStore
from gateway.kernel.clock import Clock
from gateway.management.cluster_state import LEAST_LEASE_S

#: The part of the store that this watch reports as stalled.
_PART: Final = "lease"


class LeaseWatch:
    """Stalls the ``store`` of a leader while its lease is about to end, until the lease is renewed.

    ``left_s`` returns the rest of the lease in seconds; 0 ends the watch, because the leader steps down then.
    """

    def __init__(self, clock: Clock, left_s: Callable[[], float], store: ReplicatedStore) -> None:
        self._clock = clock
        self._left_s = left_s
        self._store = store
        self._is_stalled = False

    def start(self) -> None:
        """Begin."""
        self._clock.call_later(TICK_S, self._look)

    def _look(self) -> None:
        left_s = self._left_s()
        if left_s <= 0:
            return
        is_short = left_s < LEAST_LEASE_S
        if is_short and not self._is_stalled:
            self._store.stall(_PART, f"the engine does not renew the leader's lease, which ends in {left_s:.1f} s")
        elif self._is_stalled and not is_short:
            self._store.resume(_PART)
        self._is_stalled = is_short
        self.start()
