"""Password hashing in virtual time: the answer comes later, as from a thread."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

from gateway.simulation.world.reactor import SimulatedReactor

#: The longest time that a hash takes, in seconds.
_LONGEST_S: Final = 0.05

T = TypeVar("T")

#: Results by function and arguments: a hash takes a large part of a run's processor time, and runs repeat passwords.
_results: Final[dict[tuple[Any, ...], Any]] = {}


@contextmanager
def cheap_derivation() -> Iterator[None]:
    """Let keys be derived from passwords in one round, for the length of a run.

    Each node derives those of its first user with a new salt. In 4096 rounds that took 3% of a run.
    """
    stock = hashlib.pbkdf2_hmac

    def in_one_round(hash_name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        return stock(hash_name, password, salt, 1)

    hashlib.pbkdf2_hmac = in_one_round  # type: ignore[assignment]  # its last parameter is not used
    try:
        yield
    finally:
        hashlib.pbkdf2_hmac = stock


class SimulatedHashing:
    """A ``WorkerPool`` whose work is done after a delay that the seed decides."""

    def __init__(self, reactor: SimulatedReactor) -> None:
        self.unfinished = 0
        self.refused = 0
        self._reactor = reactor

    def submit(self, work: Callable[[], T], done: Callable[[T], None], failed: Callable[[], None]) -> bool:
        """Do the work later, and call ``done``."""

        def finish() -> None:
            self.unfinished -= 1
            done(_result_of(work))

        self.unfinished += 1
        self._reactor.callLater(self._reactor.world.random.uniform(0, _LONGEST_S), finish)
        return True

    def stop(self) -> None:
        """Do nothing: the process ends."""


def _result_of(work: Callable[[], T]) -> T:
    """Do work that depends on its arguments alone, unless that was done before."""
    if not isinstance(work, partial) or work.keywords:
        return work()
    key = (work.func, *work.args)
    if key not in _results:
        _results[key] = work()
    result: T = _results[key]
    return result
