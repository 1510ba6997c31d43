"""The deduplication caches of one virtual host, by queue and exchange; stored if the queue or exchange is durable."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gateway.kernel.features.deduplication_cache import DeduplicationCache
from gateway.kernel.journal.changes import Removed
from gateway.kernel.journal.records.progress import SeenRecord

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal
    from gateway.kernel.messages.message import Message

#: The owner of a cache: a queue or an exchange.
QUEUE: Final = "queue"
EXCHANGE: Final = "exchange"


class DeduplicationCaches:
    """Owns the caches. A retired cache that is not opened again in the same turn is deleted, in the store too."""

    def __init__(self, vhost_name: str, journal: "Journal") -> None:
        self._vhost_name = vhost_name
        self._journal = journal
        self._caches: dict[tuple[str, str], DeduplicationCache] = {}
        self._retired: dict[tuple[str, str], DeduplicationCache] = {}
        self._recovered: dict[tuple[str, str], list[SeenRecord]] = {}

    def all(self) -> list[DeduplicationCache]:
        """Return the caches of all queues and exchanges."""
        return list(self._caches.values())

    def get(self, place: str, name: str) -> DeduplicationCache | None:
        """Return the cache of a queue or exchange; ``None`` if it does not deduplicate."""
        return self._caches.get((place, name))

    def open(self, place: str, name: str, size: int, ttl_ms: int | None, *, survives: bool) -> DeduplicationCache:
        """Return the cache of a queue or exchange, with its keys, and set its size and time to live."""
        key = place, name
        cache = self._retired.pop(key, None) or self._caches.get(key)
        if cache is None:
            cache = DeduplicationCache(self._journal, self._vhost_name, place, name, survives=survives)
        self._caches[key] = cache
        cache.resize(size, ttl_ms)
        return cache

    def retire(self, place: str, name: str) -> None:
        """Delete a cache, unless it is opened again before the next turn, as a change of policy does."""
        cache = self._caches.pop((place, name), None)
        if cache is not None:
            self._retired[place, name] = cache
            self._journal.clock.call_later(0, lambda: self._delete_if_retired(place, name, cache))

    def close(self, place: str, name: str) -> None:
        """Delete the cache of a queue or exchange that was deleted."""
        cache = self._caches.pop((place, name), None)
        if cache is not None:
            self._journal.clock.background.add(self._erasing(place, name, cache))

    def refused(self, message: "Message") -> None:
        """Remove the key of a message that exchanges passed and a queue rejected: its publisher will send it again."""
        for (place, _), cache in self._caches.items():
            if place == EXCHANGE:
                cache.forget_if_latest(message)

    def install(self, record: SeenRecord) -> None:
        """Collect a recovered key, in any order, until ``settle``."""
        self._recovered.setdefault((record.place, record.name), []).append(record)

    def settle(self) -> None:
        """Restore the recovered keys; delete the records of caches that no longer exist."""
        recovered, self._recovered = self._recovered, {}
        for key, records in recovered.items():
            cache = self._caches.get(key)
            if cache is not None:
                cache.restore(sorted(records, key=lambda record: record.number))
            else:
                for record in records:
                    self._journal.record(Removed(record.kind, record.key))

    def _delete_if_retired(self, place: str, name: str, cache: DeduplicationCache) -> None:
        if self._retired.get((place, name)) is cache:
            del self._retired[place, name]
            self._journal.clock.background.add(self._erasing(place, name, cache))

    def _erasing(self, place: str, name: str, cache: DeduplicationCache) -> Iterator[None]:
        """Delete a cache key by key, except keys that a new cache of the same owner stores under the same record."""
        while len(cache):
            cache.forget_oldest(besides=self._caches.get((place, name)))
            yield
