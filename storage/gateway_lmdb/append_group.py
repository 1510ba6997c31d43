"""Appends that reach the writer thread in groups, for a copy whose changes are durable elsewhere.

What comes and goes within a group is never written. And a lone append does not wake the thread, which would compete for
the interpreter with the turn that sends the same append to the log of a cluster.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.kernel.journal.changes import Appended, Change, Lsn, Sealed, SetAside, Stored, Truncated
from gateway_lmdb.staged import Append

if TYPE_CHECKING:
    from gateway_lmdb.quarantine import Quarantined
    from gateway_lmdb.stream_batch import Filed

#: Limits of a group: the time since its first append in seconds, the bytes of its bodies, and its changes.
WINDOW_S: Final = 0.25
MOST_BYTES: Final = 4 * 1024 * 1024
MOST_CHANGES: Final = 8192


class AppendGroup:
    """The appends that the writer thread does not have yet. Owned by the kernel's thread.

    Changes of streams do not wait, nor what is before them: streams are read from the files alone. Nor does what is set
    aside, which is rare.

    :param stage: hands an append to the writer thread.
    :param call_later: calls once, on the kernel's thread, so many seconds from now.
    """

    def __init__(
        self, stage: Callable[[Append], None], call_later: Callable[[float, Callable[[], None]], object]
    ) -> None:
        self._stage = stage
        self._call_later = call_later
        self._lsn = Lsn(0)
        self._changes: list[Change | Filed | Quarantined] = []
        self._bytes = 0
        self._is_scheduled = False

    def add(self, append: Append) -> None:
        """Add an append, and hand the group over if it is complete."""
        is_urgent = False
        for change in append.changes:
            if isinstance(change, Stored):
                self._bytes += len(change.message.body)
            elif isinstance(change, Appended | Sealed | Truncated | SetAside):
                is_urgent = True
        self._changes += append.changes
        self._lsn = append.lsn or self._lsn
        if is_urgent or self._bytes >= MOST_BYTES or len(self._changes) >= MOST_CHANGES:
            self.hand_over()
        elif not self._is_scheduled:
            self._is_scheduled = True
            self._call_later(WINDOW_S, self._window_ended)

    def _window_ended(self) -> None:
        self._is_scheduled = False
        self.hand_over()

    def hand_over(self) -> None:
        """Hand the group to the writer thread as one append, unless it is empty."""
        if not self._changes and not self._lsn:
            return
        lsn, changes = self._lsn, self._changes
        self._lsn, self._changes, self._bytes = Lsn(0), [], 0
        self._stage(Append(lsn, changes))
