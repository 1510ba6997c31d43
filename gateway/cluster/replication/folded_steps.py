"""Steps of a store that wait for the log: their net effect.

A message that is stored and removed while the log is busy with an earlier record costs a dictionary entry, and no
bytes in the log.
"""

from collections.abc import Collection, Iterator
from typing import Final

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.journal.changes import (
    Appended,
    Change,
    Changes,
    Dequeued,
    Discarded,
    Enqueued,
    Lsn,
    Put,
    Removed,
    Sealed,
    SetAside,
    Stored,
    Truncated,
)
from gateway.kernel.journal.entity_codec import writable
from gateway.kernel.messages import values
from gateway.kernel.messages.message import Value

#: What a record takes beside its body, about.
_OVERHEAD: Final = 64


class InLog:
    """The highest position and message id that a record of the log may have."""

    __slots__ = ("message_id", "position")

    def __init__(self, position: int, message_id: int) -> None:
        self.position = position
        self.message_id = message_id


class FoldedSteps:
    """The net effect of consecutive steps. ``lsn`` is that of the last one, ``size`` the approximate bytes of a record.

    ``refusals`` has the reasons of changes that cannot be written, and are left out. What ``in_log`` may have is
    removed by a record; what it cannot have is forgotten here.
    """

    def __init__(self, in_log: InLog) -> None:
        self.lsn = Lsn(0)
        self.size = 0
        self.refusals: list[str] = []
        self._in_log = in_log
        self._entities: dict[tuple[str, bytes], Put | Removed] = {}
        self._contents: dict[int, Stored] = {}
        self._places: dict[int, Enqueued] = {}
        self._dequeued: list[Dequeued] = []
        self._discarded: list[Discarded] = []
        self._streams: list[Appended | Sealed | Truncated] = []

    def fold(self, lsn: Lsn, changes: Changes) -> list[Change]:
        """Add a step; return its changes of streams and those that set something aside, which are rare.

        The most frequent kinds of change come first, because this loop runs for each message.
        """
        self.lsn = lsn
        rare: list[Change] = []
        for change in changes:
            if isinstance(change, Enqueued):
                self._places[change.position] = change
                self.size += _OVERHEAD
            elif isinstance(change, Dequeued):
                self._dequeue(change)
            elif isinstance(change, Stored):
                if not change.is_spilled:
                    self._contents[change.message_id] = change
                    self.size += len(change.message.body) + _OVERHEAD
            elif isinstance(change, Discarded):
                if not change.is_spilled:
                    self._discard(change)
            elif isinstance(change, Put | Removed):
                self._set_entity(change)
            else:
                rare.append(change)
                if not isinstance(change, SetAside):
                    self._streams.append(change)
                    self.size += _OVERHEAD + (len(change.message.body) if isinstance(change, Appended) else 0)
        return rare

    def _dequeue(self, change: Dequeued) -> None:
        if self._places.pop(change.position, None) is not None:
            self.size -= _OVERHEAD
        if change.position <= self._in_log.position:
            self._dequeued.append(change)
            self.size += _OVERHEAD

    def _discard(self, change: Discarded) -> None:
        stored = self._contents.pop(change.message_id, None)
        if stored is not None:
            self.size -= len(stored.message.body) + _OVERHEAD
        if change.message_id <= self._in_log.message_id:
            self._discarded.append(change)
            self.size += _OVERHEAD

    def _set_entity(self, change: Put | Removed) -> None:
        try:
            if isinstance(change, Put):
                kept: Put | Removed = change if change.record else writable(change.entity)
                self._entities[entity_name(change.entity.kind, change.entity.key)] = kept
                self.size += len(change.record) + _OVERHEAD
            else:
                self._entities[entity_name(change.kind, change.key)] = change
                self.size += _OVERHEAD
        except (TypeError, ValueError, RecursionError, PreconditionFailed) as error:  # the kernel validates before
            self.refusals.append(f"{type(error).__name__}: {error}")

    def changes(self) -> Iterator[Change]:
        """Return the changes to write: what goes before what comes.

        The steps may be those of two leaders. The second one uses ids and positions again that the first one has
        freed, so a message may have the id of one that was discarded before it.
        """
        yield from self._entities.values()
        yield from self._dequeued
        yield from self._discarded
        yield from self._contents.values()
        yield from self._places.values()
        yield from self._streams

    @property
    def entity_names(self) -> Collection[tuple[str, bytes]]:
        """The names of the entities that are written or removed."""
        return self._entities.keys()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        messages = self._contents or self._places or self._dequeued or self._discarded
        return not (messages or self._entities or self._streams)

    def in_log(self) -> InLog:
        """Return what a record of the log may have after these steps."""
        return InLog(
            max(self._in_log.position, max(self._places, default=0)),
            max(self._in_log.message_id, max(self._contents, default=0)),
        )


def entity_name(kind: str, key: tuple[Value, ...]) -> tuple[str, bytes]:
    """Return a hashable name for an entity: keys may contain mappings."""
    return kind, values.dumps_key(key)
