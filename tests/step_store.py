"""A store in memory that shows the steps of long work, for tests with a ``TickingClock``."""

from gateway.kernel.journal.changes import Changes, Lsn
from gateway_memory import MemoryStore


class StepStore(MemoryStore):
    """Records the size of each step."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def append(self, changes: Changes) -> Lsn:
        self.sizes.append(len(changes))
        return super().append(changes)
