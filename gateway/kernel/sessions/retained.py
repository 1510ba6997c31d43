"""Retained messages: the last message of each topic, for subscribers that come later."""

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING, Final

from gateway.kernel.clock import drained
from gateway.kernel.deadlines import Deadlines
from gateway.kernel.events import Event, Events
from gateway.kernel.journal.changes import Put, Removed
from gateway.kernel.journal.records.sessions import RetainedRecord
from gateway.kernel.messages.message import Message
from gateway.kernel.sessions.retained_levels import RetainedLevel, RetainedMessage, found_from, words_of
from gateway.kernel.sessions.subscriptions import is_pattern, may_match

__all__ = ["Retained", "RetainedMessage"]

if TYPE_CHECKING:
    from gateway.kernel.journal.journal import Journal

#: Units of work charged for retaining a message.
_WORK: Final = 32

#: The minimum time between two reports that a message did not fit, in seconds: publishers repeat their messages.
_REPORT_S: Final = 60.0


class Retained:
    """Owns the retained messages of one virtual host. All but the transient ones survive restarts.

    ``max_messages`` and ``max_bytes`` limit them; a message of a new topic that does not fit is refused and counted in
    ``refused``, that of an existing topic is replaced. Expired messages are removed on time. ``count``, ``bytes`` and
    ``body_bytes`` are totals without the transient messages.
    """

    def __init__(self, vhost_name: str, journal: "Journal", events: Events) -> None:
        self._vhost_name = vhost_name
        self._journal = journal
        self._events = events
        self._root = RetainedLevel()
        self._number = 0
        self._expiries = Deadlines(journal.clock, self._expired)
        self.count = 0
        self.bytes = 0
        self.body_bytes = 0
        self._reported_at_s = -inf
        self.refused = 0
        self.max_messages = 100_000
        self.max_bytes = 256 * 2**20

    def __len__(self) -> int:
        return self.count

    def release(self) -> None:
        """Let no message expire any more: the virtual host was deleted."""
        self._expiries.release()

    @property
    def newest(self) -> int:
        """The number of the message that was retained last."""
        return self._number

    def keep(self, message: Message) -> bool:
        """Retain a message, replacing the last one of its key; one without a body only clears the key (MQTT-3.3.1-6).

        It is retained until it expires. Return whether there was room.
        """
        self._journal.budget.work += _WORK
        if not message.body:
            self.clear(message.routing_key)
            return True
        expiration_ms = message.header.expiration_ms
        expires_at_ms = 0 if expiration_ms is None else self._journal.now_ms + expiration_ms
        kept = RetainedMessage(message, expires_at_ms, number=self._next_number())
        if not self._has_room(kept):
            self._refuse(message)
            return False
        self._store(kept)
        return True

    def move(self, kept: RetainedMessage, exchange: str, routing_key: str) -> None:
        """Retain a message under another address, until the same time; a message that has the key is replaced."""
        message = kept.message.with_address(exchange, routing_key, kept.message.header)
        self.clear(kept.message.routing_key)
        self._store(RetainedMessage(message, kept.expires_at_ms, number=self._next_number()))

    def _store(self, kept: RetainedMessage) -> None:
        """Add a message, and record it."""
        self._install(kept)
        message, header = kept.message, kept.message.header
        self._journal.record(
            Put(
                RetainedRecord(
                    self._vhost_name,
                    message.routing_key,
                    message.exchange,
                    header.format.name,
                    header.raw,
                    message.body,
                    kept.expires_at_ms,
                )
            )
        )

    def keep_transient(self, message: Message) -> None:
        """Retain a message that does not survive a restart, replacing the last one of its key."""
        self._install(RetainedMessage(message, 0, is_transient=True, number=self._next_number()))

    def clear(self, routing_key: str) -> None:
        """Remove the retained message of this key."""
        path = [self._root]
        words = words_of(routing_key)
        for word in words:
            level = path[-1].after(word)
            if level is None:
                return
            path.append(level)
        kept, path[-1].kept = path[-1].kept, None
        if kept is None:
            return
        self._count_size(kept, -1)
        while words and path[-1].is_bare:
            path.pop()
            path[-1].cut(words.pop())
        if not kept.is_transient:
            self._journal.record(Removed(RetainedRecord.kind, (self._vhost_name, routing_key)))

    def get(self, routing_key: str) -> RetainedMessage | None:
        """Return the retained message of this key; it may have expired."""
        level: RetainedLevel | None = self._root
        for word in words_of(routing_key):
            if level is None:
                return None
            level = level.after(word)
        return None if level is None else level.kept

    def matching(self, binding_key: str) -> list[Message]:
        """Return the retained messages that match a topic or pattern."""
        return [message for message in self.walk(binding_key) if message is not None]

    def walk(self, binding_key: str) -> Iterator[Message | None]:
        """Iterate over the matching messages in steps; ``None`` is a step without a message.

        Messages retained during the iteration are skipped: an existing subscriber gets them when they are published.
        """
        return self._walk(binding_key, self._number)

    def _walk(self, binding_key: str, newest: int) -> Iterator[Message | None]:
        is_exact = not is_pattern(binding_key)
        for kept in found_from(self._root, words_of(binding_key)):
            if kept is None or kept.number > newest or 0 < kept.expires_at_ms <= self._journal.now_ms:
                yield None
            elif is_exact or may_match(binding_key, kept.message.routing_key):
                yield kept.message
            else:
                yield None

    def install(self, record: RetainedRecord) -> None:
        """Restore a retained message."""
        header = self._journal.formats[record.header_format].header(record.header)
        message = Message(record.exchange, record.routing_key, header, record.body)
        self._install(RetainedMessage(message, record.expires_at_ms, number=self._next_number()))

    def erasing(self) -> Iterator[None]:
        """Return the steps that remove all of them: the virtual host is deleted."""
        keys = []
        for kept in found_from(self._root, ["#"]):
            if kept is not None:
                keys.append(kept.message.routing_key)
            yield
        for key in drained(keys):
            self.clear(key)
            yield

    def __iter__(self) -> Iterator[RetainedMessage]:
        return (kept for kept in found_from(self._root, ["#"]) if kept is not None)

    def steps(self) -> "Iterator[RetainedMessage | None]":
        """Yield all messages over several turns; ``None`` at a point where other work may run."""
        return found_from(self._root, ["#"])

    def _has_room(self, kept: RetainedMessage) -> bool:
        replaced = self.get(kept.message.routing_key)
        if replaced is not None and not replaced.is_transient:
            return self.bytes - replaced.size + kept.size <= self.max_bytes
        return self.count < self.max_messages and self.bytes + kept.size <= self.max_bytes

    def _refuse(self, message: Message) -> None:
        """Count a message that was not retained, and report it."""
        self.refused += 1
        now_s = self._journal.clock.monotonic_s()
        if now_s >= self._reported_at_s + _REPORT_S:
            self._reported_at_s = now_s
            details = {"routing_key": message.routing_key, "kept": self.count, "refused": self.refused}
            self._events.emit(Event("retained.refused", self._vhost_name, message.exchange, details))

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _install(self, kept: RetainedMessage) -> None:
        level, key = self._root, kept.message.routing_key
        for word in words_of(key):
            level = level.after(word) or level.grow(word)
        if level.kept is not None:
            self._count_size(level.kept, -1)
        level.kept = kept
        self._count_size(kept, 1)
        if kept.expires_at_ms:
            self._expiries.set(key, (kept.expires_at_ms - self._journal.now_ms) / 1000)

    def _expired(self, routing_key: str) -> None:
        """Remove an expired message; if the wall clock was set back, wait for the rest of its time."""
        kept = self.get(routing_key)
        if kept is None or not kept.expires_at_ms:
            return
        left_ms = kept.expires_at_ms - self._journal.clock.wall_ms()
        if left_ms > 0:
            self._expiries.set(routing_key, left_ms / 1000)
        else:
            self.clear(routing_key)

    def _count_size(self, kept: RetainedMessage, times: int) -> None:
        if kept.expires_at_ms and times < 0:
            self._expiries.drop(kept.message.routing_key)
        if not kept.is_transient:
            self.count += times
            self.bytes += times * kept.size
            self.body_bytes += times * len(kept.message.body)
