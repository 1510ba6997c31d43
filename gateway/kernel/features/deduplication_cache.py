"""A bounded cache of message keys, to detect a message that was published twice."""

from collections.abc import Generator, Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from gateway.kernel.clock import drained
from gateway.kernel.journal.changes import Put, Removed
from gateway.kernel.journal.records.progress import SeenRecord
from gateway.kernel.messages.message import Message, Value
from gateway.kernel.messages.values import dumps_key

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal

#: The header with a message's key, set by its publisher.
KEY_HEADER: Final = "x-deduplication-header"

#: The default maximum number of keys.
DEFAULT_SIZE: Final = 10_000


class DeduplicationCache:
    """The latest keys of one queue or exchange, each for a time (``None``: until newer keys evict it).

    If the queue or exchange ``survives`` a restart, its keys do too: a key is recorded in the same step as its message.
    A repeated key does not extend its time. ``place`` is ``queue`` or ``exchange``, ``size`` the most keys.
    """

    __slots__ = (
        "_journal",
        "_number",
        "_until_ms_by_key",
        "name",
        "place",
        "size",
        "survives",
        "ttl_ms",
        "vhost",
    )

    def __init__(self, journal: "Journal", vhost: str, place: str, name: str, *, survives: bool) -> None:
        self._journal = journal
        self.vhost = vhost
        self.place = place
        self.name = name
        self.survives = survives
        self.size = DEFAULT_SIZE
        self.ttl_ms: int | None = None
        self._number = 0
        self._until_ms_by_key: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._until_ms_by_key)

    def resize(self, size: int, ttl_ms: int | None) -> None:
        """Set the maximum number of keys, and the time to live of new ones."""
        self.size = size
        self.ttl_ms = ttl_ms
        while len(self._until_ms_by_key) > size:
            self.forget_oldest()

    def is_repeated(self, message: Message) -> bool:
        """Return whether a message's key is in the cache; add it if not. A message without a key is never repeated.

        A message can set the time to live of its key (``x-cache-ttl``).
        """
        key = _key_of(message)
        if key is None:
            return False
        now_ms = self._journal.clock.wall_ms()
        if self._has(key, now_ms):
            if self.survives:
                self._journal.store_indirectly()  # its confirm waits until the first message is durable
            return True
        ttl_ms = positive(message.headers.get("x-cache-ttl")) or self.ttl_ms
        self._remember(key, 0 if ttl_ms is None else now_ms + ttl_ms)
        return False

    def has_key_of(self, message: Message) -> bool:
        """Return whether a message's key is in the cache, without adding it."""
        key = _key_of(message)
        return key is not None and self._has(key, self._journal.clock.wall_ms())

    def _has(self, key: bytes, now_ms: int) -> bool:
        until_ms = self._until_ms_by_key.get(key)
        return until_ms is not None and (not until_ms or now_ms < until_ms)

    def forget(self, message: Message) -> None:
        """Remove the key of a message that was not accepted."""
        key = _key_of(message)
        if key is not None:
            self._forget(key)

    def forget_if_latest(self, message: Message) -> None:
        """Remove the key of a message that was not accepted, if it is the latest key."""
        if self._until_ms_by_key and _key_of(message) == next(reversed(self._until_ms_by_key)):
            self.forget(message)

    def forget_oldest(self, besides: "DeduplicationCache | None" = None) -> None:
        """Evict the oldest key; its record stays if the cache ``besides`` has the same key."""
        key = next(iter(self._until_ms_by_key))
        if besides is not None and key in besides._until_ms_by_key:
            del self._until_ms_by_key[key]
        else:
            self._forget(key)

    def clearing(self) -> Generator[None, None, None]:
        """Return the steps that forget all keys of now."""
        for key in drained(list(self._until_ms_by_key)):
            self._forget(key)
            yield

    def restore(self, records: Iterable[SeenRecord]) -> None:
        """Restore recovered keys, oldest first."""
        for record in records:
            self._until_ms_by_key[record.digest] = record.until_ms
            self._number = record.number
        while len(self._until_ms_by_key) > self.size:
            self.forget_oldest()

    def _remember(self, key: bytes, until_ms: int) -> None:
        """Add a key as the latest; evict the oldest if the cache is full."""
        self._until_ms_by_key.pop(key, None)
        self._until_ms_by_key[key] = until_ms
        self._number += 1
        if self.survives:
            seen = SeenRecord(self.vhost, self.place, self.name, key, self._number, until_ms)
            self._journal.record(Put(seen))
        if len(self._until_ms_by_key) > self.size:
            self.forget_oldest()

    def _forget(self, key: bytes) -> None:
        if self._until_ms_by_key.pop(key, None) is not None and self.survives:
            self._journal.record(Removed(SeenRecord.kind, (self.vhost, self.place, self.name, key)))


def positive(value: Value) -> int | None:
    """Return an integer above zero; ``None`` for any other value."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _key_of(message: Message) -> bytes | None:
    """Return a digest of a message's key, so that its size is bounded; ``None`` without a key."""
    headers = message.headers
    if KEY_HEADER not in headers:
        return None
    return blake2b(dumps_key([headers[KEY_HEADER]]), digest_size=16).digest()
