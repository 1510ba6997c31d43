"""Drops of messages that wait for a later turn, because this one has published many dead letters already.

One message may make a thousand queues drop their oldest one. If each of these dead letters goes to a thousand queues,
which drop a message each, that is a million offers, and a billion with one more exchange in the chain.
"""

from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from gateway.kernel.budget import PendingWork

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal

Drop: TypeAlias = "Callable[[], Iterator[None] | None]"
"""Drops a message and publishes its dead letter; returns the remaining steps if that takes several turns."""


class PostponedDrops:
    """The drops of one virtual host that wait, in order.

    A message whose drop waits is out of its queue and still in the store: after a crash its queue drops it again. Drops
    that a dead letter causes are made next, so that the memory holds those of one letter for each exchange of a chain.
    The connection whose request caused drops is not read from until all of them are made. ``on_fault`` is called with
    exceptions of drops.
    """

    def __init__(self, journal: "Journal", on_fault: Callable[[Exception], None]) -> None:
        self._journal = journal
        self._on_fault = on_fault
        self._drops: deque[Drop] = deque()
        self._caused: list[Drop] | None = None
        self._making: Iterator[None] | None = None
        self._is_scheduled = False
        self._work = PendingWork()

    @property
    def are_waiting(self) -> bool:
        """Whether some drop is not finished, so that later ones have to wait too."""
        return self._making is not None

    def add(self, drop: Drop) -> None:
        """Make a drop in a later turn."""
        if self._caused is not None:
            self._caused.append(drop)
            return
        self._drops.append(drop)
        if self._making is None:
            self._making = self._made()
        if not self._is_scheduled:
            self._is_scheduled = True
            self._journal.clock.background.add_later(self._job())
        if self._journal.budget.pending is None:
            self._journal.budget.leave_pending(self._work)

    def steps(self) -> Iterator[None]:
        """Return the steps that finish all drops. Several jobs may share them."""
        while self._making is not None:
            next(self._making, None)
            yield

    def _job(self) -> Iterator[None]:
        yield from self.steps()
        self._is_scheduled = False

    def _made(self) -> Iterator[None]:
        """Return the steps of ``steps``. Dead letters delay no confirm: no publish of their turn caused them."""
        journal = self._journal
        while self._drops:
            drop, caused = self._drops.popleft(), list[Drop]()
            rest = journal.delaying_no_confirm(partial(self._call, drop, caused))
            while rest is not None:
                yield
                rest = journal.delaying_no_confirm(partial(self._call, partial(_advanced, rest), caused))
            self._drops.extendleft(reversed(caused))
            yield
        self._making = None
        work, self._work = self._work, PendingWork()
        work.finish()

    def _call(self, drop: Drop, caused: list[Drop]) -> Iterator[None] | None:
        """Call a part of a drop, and collect the drops that it causes; contain an exception."""
        self._caused = caused
        try:
            return drop()
        except Exception as error:  # the other drops have to be made
            self._on_fault(error)
            return None
        finally:
            self._caused = None


def _advanced(steps: Iterator[None]) -> Iterator[None] | None:
    """Make one step, and return the steps if it was not the last one."""
    for _ in steps:
        return steps
    return None
