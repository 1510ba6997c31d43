"""What was seen lately: a bounded memory of keys, to tell a message that was published twice."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from gateway.kernel.journal.changes import Put, Removed
from gateway.kernel.journal.records import SeenRecord
from gateway.kernel.messages.message import Message, Value
from gateway.kernel.messages.values import dumps_key

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal

#: The header a publisher names a message with.
KEY_HEADER: Final = "x-deduplication-header"

#: How many keys are remembered where nobody says so.
DEFAULT_SIZE: Final = 10_000


class DeduplicationCache:
    """Remembers the last keys of one place, each for a time (``None``: until newer ones push it out).

    Where the place ``survives`` a restart, what it remembers does too: a key is recorded in the step in which its
    message is. A key seen again is not remembered for longer.
    """

    __slots__ = (
        "_journal",
        "_name",
        "_number",
        "_place",
        "_size",
        "_survives",
        "_ttl_ms",
        "_until_ms_by_key",
        "_vhost",
    )

    def __init__(self, journal: "Journal", vhost: str, place: str, name: str, *, survives: bool) -> None:
        self._journal = journal
        self._vhost = vhost
        self._place = place
        self._name = name
        self._survives = survives
        self._size = DEFAULT_SIZE
        self._ttl_ms: int | None = None
        self._number = 0
        self._until_ms_by_key: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._until_ms_by_key)

    def resize(self, size: int, ttl_ms: int | None) -> None:
        """Remember so many keys from now on, and new ones for so long."""
        self._size = size
        self._ttl_ms = ttl_ms
        while len(self._until_ms_by_key) > size:
            self.forget_oldest()

    def is_repeated(self, message: Message) -> bool:
        """Return whether a message with the same key came lately; if not, remember it. One without a key is new.

        The message may say itself for how long it is to be remembered (``x-cache-ttl``).
        """
        key = _key_of(message)
        if key is None:
            return False
        now_ms = self._journal.clock.wall_ms()
        until_ms = self._until_ms_by_key.get(key)
        if until_ms is not None and (not until_ms or now_ms < until_ms):
            if self._survives:
                self._journal.moved_lsn = self._journal.lsn  # its confirm waits for the first one's to be true
            return True
        ttl_ms = positive(message.headers.get("x-cache-ttl")) or self._ttl_ms
        self._remember(key, 0 if ttl_ms is None else now_ms + ttl_ms)
        return False

    def forget(self, message: Message) -> None:
        """Forget a message that was not taken after all."""
        key = _key_of(message)
        if key is not None:
            self._forget(key)

    def forget_if_latest(self, message: Message) -> None:
        """Forget a message that was not taken after all, if it is the one that was remembered last."""
        if self._until_ms_by_key and _key_of(message) == next(reversed(self._until_ms_by_key)):
            self.forget(message)

    def forget_oldest(self, besides: "DeduplicationCache | None" = None) -> None:
        """Forget the key that came first; its record stays if another window remembers it ``besides``."""
        key = next(iter(self._until_ms_by_key))
        if besides is not None and key in besides._until_ms_by_key:
            del self._until_ms_by_key[key]
        else:
            self._forget(key)

    def restore(self, records: Iterable[SeenRecord]) -> None:
        """Remember what recovery found, oldest first."""
        for record in records:
            self._until_ms_by_key[record.digest] = record.until_ms
            self._number = record.number
        while len(self._until_ms_by_key) > self._size:
            self.forget_oldest()

    def _remember(self, key: bytes, until_ms: int) -> None:
        """Remember a key as the youngest; the oldest gives way."""
        self._until_ms_by_key.pop(key, None)
        self._until_ms_by_key[key] = until_ms
        self._number += 1
        if self._survives:
            seen = SeenRecord(self._vhost, self._place, self._name, key, self._number, until_ms)
            self._journal.record(Put(seen))
        if len(self._until_ms_by_key) > self._size:
            self.forget_oldest()

    def _forget(self, key: bytes) -> None:
        if self._until_ms_by_key.pop(key, None) is not None and self._survives:
            self._journal.record(Removed(SeenRecord.kind, (self._vhost, self._place, self._name, key)))


def positive(value: Value) -> int | None:
    """Return a whole number above zero; ``None`` for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _key_of(message: Message) -> bytes | None:
    """Return what a message is known by, bounded in size whatever its publisher wrote; ``None`` without a key."""
    headers = message.headers
    if KEY_HEADER not in headers:
        return None
    return blake2b(dumps_key([headers[KEY_HEADER]]), digest_size=16).digest()
