"""Encoded entries of the audit record in memory: compressed in blocks, because they resemble each other."""

import zlib
from array import array
from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

#: Entries in a block: about as many as a listing decodes in one step.
_BLOCK: Final = 32

#: The bytes of records after which a block is complete, so that its compression takes a millisecond at most.
_BLOCK_BYTES: Final = 64 * 1024

#: Higher levels take several times as long, and save a few percent.
_LEVEL: Final = 1


class AuditEntry(NamedTuple):
    """An entry as the store has it, with its number and its wall time in milliseconds."""

    number: int
    at_ms: int
    record: bytes


class _Block:
    """Successive entries. ``first`` is the index of the oldest one that was not dropped."""

    __slots__ = ("_at_ms", "_ends", "_numbers", "_packed", "first")

    def __init__(self, entries: list[AuditEntry]) -> None:
        self.first = 0
        self._numbers = array("Q", [entry.number for entry in entries])
        self._at_ms = array("Q", [entry.at_ms for entry in entries])
        self._ends = array("I")
        end = 0
        for entry in entries:
            end += len(entry.record)
            self._ends.append(end)
        self._packed = zlib.compress(b"".join([entry.record for entry in entries]), _LEVEL)

    def __len__(self) -> int:
        return len(self._numbers) - self.first

    @property
    def oldest_ms(self) -> int:
        """The wall time of the oldest entry."""
        return self._at_ms[self.first]

    def drop_oldest(self) -> tuple[int, int]:
        """Drop the oldest entry; return its number and the size of its record."""
        at = self.first
        self.first += 1
        return self._numbers[at], self._ends[at] - (self._ends[at - 1] if at else 0)

    def entries(self) -> list[AuditEntry]:
        """Return the entries, oldest first."""
        records = zlib.decompress(self._packed)
        starts = [0, *self._ends]
        return [
            AuditEntry(self._numbers[at], self._at_ms[at], records[starts[at] : self._ends[at]])
            for at in range(self.first, len(self._numbers))
        ]


class AuditEntries:
    """Owns the encoded entries, oldest first. An entry of 450 bytes takes about 150 in memory, the newest 32 more.

    ``size`` is the number of bytes of all records, as they are in the store.
    """

    def __init__(self) -> None:
        self._blocks: deque[_Block] = deque()
        self._recent: deque[AuditEntry] = deque()
        self._recent_bytes = 0
        self._count = 0
        self.size = 0

    def __len__(self) -> int:
        return self._count

    @property
    def oldest_ms(self) -> int:
        """The wall time of the oldest entry; there must be one."""
        return self._blocks[0].oldest_ms if self._blocks else self._recent[0].at_ms

    def add(self, entry: AuditEntry) -> None:
        """Add the newest entry."""
        self._recent.append(entry)
        self._count += 1
        self.size += len(entry.record)
        self._recent_bytes += len(entry.record)
        if len(self._recent) >= _BLOCK or self._recent_bytes >= _BLOCK_BYTES:
            self._blocks.append(_Block(list(self._recent)))
            self._recent.clear()
            self._recent_bytes = 0

    def drop_oldest(self) -> int:
        """Drop the oldest entry, and return its number; there must be one."""
        if self._blocks:
            number, size = self._blocks[0].drop_oldest()
            if not self._blocks[0]:
                self._blocks.popleft()
        else:
            entry = self._recent.popleft()
            number, size = entry.number, len(entry.record)
            self._recent_bytes -= size
        self._count -= 1
        self.size -= size
        return number

    def newest_first(self) -> Iterator[AuditEntry]:
        """Return the entries as they are now, the newest first. Those dropped meanwhile may be left out."""
        blocks, recent = list(self._blocks), list(self._recent)
        return _newest_first(blocks, recent)


def _newest_first(blocks: list[_Block], recent: list[AuditEntry]) -> Iterator[AuditEntry]:
    yield from reversed(recent)
    while blocks:
        yield from reversed(blocks.pop().entries())
