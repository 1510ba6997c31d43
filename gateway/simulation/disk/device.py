"""The device below a simulated disk: its files, its faults, and the log of what happens to it."""

from collections.abc import Callable
from errno import EIO, ENOSPC
from random import Random
from typing import Final

from gateway.simulation.disk.files import FileTree

#: The free space of a disk that is not full, in bytes.
_MUCH: Final = 1 << 40

#: States kept of a disk that lies.
_MOST_FROZEN: Final = 64


class Device:
    """Files and faults. Processes access it through ``Steps``.

    ``sync_delay_s`` is the virtual time of a sync, ``errors`` the error numbers of the next ones; ``fails`` says
    whether the next root of LMDB cannot be written.
    """

    def __init__(self, random: Random, log: Callable[[str], None] | None) -> None:
        self.files = FileTree()
        self.random = random
        self.log = log
        self.sync_delay_s = 0.0
        self.is_full = False
        self.fails = False
        self.errors: list[int] = []
        self._is_lying = False
        self._frozen: list[Callable[[], None]] = []

    def note(self, operation: str) -> None:
        """Log an operation."""
        if self.log is not None:
            self.log(operation)

    @property
    def free_bytes(self) -> int:
        """The free space."""
        return 0 if self.is_full else _MUCH

    def space_fault(self, size: int) -> int:
        """Return the error number of a write that needs ``size`` more bytes or pages, 0 if it succeeds."""
        if not (self.is_full and size):
            return 0
        return self.random.choice((ENOSPC, ENOSPC, EIO))

    def sync_fault(self) -> int:
        """Return the error number of a sync, 0 if it succeeds."""
        return self.errors.pop() if self.errors else 0

    def takes_failure(self) -> bool:
        """Return whether LMDB's root cannot be written, once for each failure."""
        fails, self.fails = self.fails, False
        return fails

    # Durability

    def synced(self, sync: Callable[[], None]) -> None:
        """Make something durable with ``sync``, or pretend to."""
        sync()
        if self._is_lying:
            self._frozen.append(self.files.root.freeze())
            if len(self._frozen) > _MOST_FROZEN:
                del self._frozen[1]
        elif self._frozen:
            self._frozen.clear()

    def lie(self, is_lying: bool) -> None:
        """Pretend that syncs make something durable, or end that: then the next one does."""
        if is_lying and not self._is_lying:
            self._frozen = [self.files.root.freeze()]
        self._is_lying = is_lying

    def lose_power(self) -> None:
        """Lose what is not durable, or random parts of it; after lies, what was written since some moment."""
        if self._frozen:
            self.random.choice(self._frozen)()
            self._frozen.clear()
            self.lie(self._is_lying)
        else:
            self.files.root.lose_power(self.random)
