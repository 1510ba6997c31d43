"""Verification of the audit record's chain: which entries were changed, removed, inserted or moved."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from gateway.kernel.broker.audit_chain import COVERED, digest_of

#: ``NUMBER:DIGEST``.
_NOTE: Final = re.compile(r"(\d{1,18}):([0-9a-f]{64})")


class ChainFault(NamedTuple):
    """A fault of the chain at an entry, by its number."""

    entry: int
    finding: str


@dataclass(frozen=True, slots=True)
class Note:
    """The number and the digest of an entry, noted earlier outside of the broker."""

    number: int
    digest: str

    @classmethod
    def parse(cls, text: str) -> "Note | None":
        """Return the note ``NUMBER:DIGEST``; ``None`` if it is malformed."""
        match = _NOTE.fullmatch(text)
        return None if match is None else cls(int(match[1]), match[2])


class AuditVerification:
    """Verifies entries, given oldest first. Owns the findings.

    ``unchained`` counts the entries at the beginning that an earlier version wrote without digests.
    """

    def __init__(self, note: Note | None = None) -> None:
        self.findings: list[ChainFault] = []
        self.verified = 0
        self.unchained = 0
        self.newest: Note | None = None
        self._note = note
        self._first: int | None = None
        self._before: list[Note] = []  # all verified entries: they may be out of place

    def verify(self, entries: Iterable[Mapping[str, Any]]) -> None:
        """Verify the next entries."""
        for entry in entries:
            self._verify(entry)

    def end(self) -> None:
        """Compare the noted entry, after the last one."""
        note = self._note
        if note is None:
            return
        noted = next((each for each in self._before if each.number == note.number), None)
        if noted is None:
            where = "removed" if self._first is None or note.number > self._first else "dropped or removed"
            self._found(note.number, f"the noted entry was {where}")
        elif noted.digest != note.digest:
            self._found(note.number, "has another digest than was noted: it, or an entry before it, was written anew")

    def _verify(self, entry: Mapping[str, Any]) -> None:
        if not all(name in entry for name in COVERED) or not _is_number(entry["number"]):
            self._found(self.newest.number if self.newest else 0, "is followed by something that is no entry")
            return
        number, digest, previous = entry["number"], str(entry.get("digest", "")), str(entry.get("previous", ""))
        self._first = number if self._first is None else self._first
        if not digest and self.newest is None:
            self.unchained += 1
            return
        self.verified += 1
        if digest != digest_of(previous, entry):
            self._found(number, "was changed")
        elif self.newest is not None and previous != self.newest.digest:
            self._misplaced(number, previous, digest)
        self.newest = Note(number, digest)
        self._before.append(self.newest)

    def _misplaced(self, number: int, previous: str, digest: str) -> None:
        """Find out why an entry does not follow the one before it."""
        newest, before = self.newest, self._before
        assert newest is not None
        if any(each.digest == digest for each in before):
            self._found(number, "is there twice")
        elif len(before) > 1 and before[-2].digest == previous:
            self._found(newest.number, f"was inserted or moved before entry {number}")
        elif any(each.digest == previous for each in before):
            self._found(number, f"was moved: it does not belong after entry {newest.number}")
        else:
            self._found(number, f"does not follow entry {newest.number}: entries between them were removed or changed")

    def _found(self, number: int, finding: str) -> None:
        self.findings.append(ChainFault(number, finding))


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
