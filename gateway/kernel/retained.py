"""The last message of each topic that its publisher wanted kept, for subscribers that come later."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

from gateway.kernel.changes import Put, Removed
from gateway.kernel.events import Event, Events
from gateway.kernel.message import Message
from gateway.kernel.records import RetainedRecord
from gateway.kernel.subscriptions import is_pattern, may_match

if TYPE_CHECKING:
    from gateway.kernel.journal import Journal
    from gateway.kernel.ports import Timer

#: How often what has expired is looked for, in seconds, and how often at most when there is no room.
_SWEEP_S: Final = 60.0
_LOOK_S: Final = 1.0

#: How often it is told at most that there was no room, in seconds: a publisher repeats itself.
_TELL_S: Final = 60.0

#: What one message costs besides its body, in bytes: keeps a limit in bytes honest for empty bodies.
_OVERHEAD: Final = 200


@dataclass(frozen=True, slots=True)
class RetainedMessage:
    """A retained message, and when it is no longer worth anything: wall time in milliseconds, 0 for never.

    One that ``is_transient`` is the broker's own: no store has it, and it counts for no limit.
    """

    message: Message
    expires_at_ms: int
    is_transient: bool = False

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return len(self.message.body) + len(self.message.header.raw) + len(self.message.routing_key) + _OVERHEAD


class _Level:
    """A word of some routing keys: the words that follow it, and the message of the key that ends here."""

    __slots__ = ("kept", "next")

    def __init__(self) -> None:
        self.next: dict[str, _Level] = {}
        self.kept: RetainedMessage | None = None


class Retained:
    """Owns the retained messages of one virtual host. All of them survive restarts, but for the transient.

    ``max_messages`` and ``max_bytes`` bound them; a new topic that does not fit is refused, one that is there already
    is replaced. ``count`` and ``bytes`` tell how much is kept, ``body_bytes`` how much of that are bodies, all of them
    without what is transient. ``refused`` are those there was no room for.
    """

    def __init__(self, vhost_name: str, journal: "Journal", events: Events) -> None:
        self._vhost_name = vhost_name
        self._journal = journal
        self._events = events
        self._root = _Level()
        self.count = 0
        self.bytes = 0
        self.body_bytes = 0
        self._expiring = 0
        self._sweeper: Timer | None = None
        self._looked_at_s = -inf
        self._told_at_s = -inf
        self.refused = 0
        self.max_messages = 100_000
        self.max_bytes = 1_000_000_000

    def __len__(self) -> int:
        return self.count

    def keep(self, message: Message) -> bool:
        """Retain a message in place of the last one of its key; one without a body only clears (MQTT-3.3.1-6).

        It is kept for as long as it asked to live. Return whether there was room.
        """
        if not message.body:
            self.clear(message.routing_key)
            return True
        expiration_ms = message.header.expiration_ms
        expires_at_ms = 0 if expiration_ms is None else self._journal.now_ms + expiration_ms
        kept = RetainedMessage(message, expires_at_ms)
        if not self._has_room(kept):
            self._sweep_when_full()
            if not self._has_room(kept):
                self._refuse(message)
                return False
        self._install(kept)
        header = message.header
        self._journal.record(
            Put(
                RetainedRecord(
                    self._vhost_name,
                    message.routing_key,
                    message.exchange,
                    header.format.name,
                    header.raw,
                    message.body,
                    expires_at_ms,
                )
            )
        )
        return True

    def keep_transient(self, message: Message) -> None:
        """Retain a message that tells of this run of the broker alone, in place of the last one of its key."""
        self._install(RetainedMessage(message, 0, is_transient=True))

    def clear(self, routing_key: str) -> None:
        """Retain nothing under this key any more."""
        path = [self._root]
        words = routing_key.split(".")
        for word in words:
            level = path[-1].next.get(word)
            if level is None:
                return
            path.append(level)
        kept, path[-1].kept = path[-1].kept, None
        if kept is None:
            return
        self._weigh(kept, -1)
        while words and not path[-1].next and path[-1].kept is None:
            path.pop()
            del path[-1].next[words.pop()]
        if not kept.is_transient:
            self._journal.record(Removed(RetainedRecord.kind, (self._vhost_name, routing_key)))

    def get(self, routing_key: str) -> RetainedMessage | None:
        """Return what is retained under a key, though it may have expired."""
        levels = self._found(routing_key.split("."), literally=True)
        return levels[0].kept if levels else None

    def matching(self, binding_key: str) -> list[Message]:
        """Return what is retained for a topic, or for all topics that a pattern stands for."""
        now_ms = self._journal.now_ms
        levels = self._found(binding_key.split("."))
        found = [level.kept for level in levels if level.kept is not None]
        is_exact = not is_pattern(binding_key)
        return [
            kept.message
            for kept in found
            if not 0 < kept.expires_at_ms <= now_ms and (is_exact or may_match(binding_key, kept.message.routing_key))
        ]

    def sweep(self) -> None:
        """Forget what has expired."""
        now_ms = self._journal.now_ms
        for kept in [kept for kept in self if 0 < kept.expires_at_ms <= now_ms]:
            self.clear(kept.message.routing_key)

    def install(self, record: RetainedRecord) -> None:
        """Bring a retained message back."""
        header = self._journal.formats[record.header_format].header(record.header)
        message = Message(record.exchange, record.routing_key, header, record.body)
        self._install(RetainedMessage(message, record.expires_at_ms))

    def erase(self) -> None:
        """Forget all of them: the virtual host goes."""
        for kept in list(self):
            self.clear(kept.message.routing_key)

    def __iter__(self) -> Iterator[RetainedMessage]:
        return (level.kept for level in _below(self._root) if level.kept is not None)

    def _has_room(self, kept: RetainedMessage) -> bool:
        replaced = self.get(kept.message.routing_key)
        if replaced is not None and not replaced.is_transient:
            return self.bytes - replaced.size + kept.size <= self.max_bytes
        return self.count < self.max_messages and self.bytes + kept.size <= self.max_bytes

    def _refuse(self, message: Message) -> None:
        """Count a message that is not retained, and tell that there are such."""
        self.refused += 1
        now_s = self._journal.clock.monotonic_s()
        if now_s >= self._told_at_s + _TELL_S:
            self._told_at_s = now_s
            details = {"routing_key": message.routing_key, "kept": self.count, "refused": self.refused}
            self._events.emit(Event("retained.refused", self._vhost_name, message.exchange, details))

    def _install(self, kept: RetainedMessage) -> None:
        level = self._root
        for word in kept.message.routing_key.split("."):
            level = level.next.setdefault(word, _Level())
        if level.kept is not None:
            self._weigh(level.kept, -1)
        level.kept = kept
        self._weigh(kept, 1)
        if kept.expires_at_ms and self._sweeper is None:
            self._sweeper = self._journal.clock.call_later(_SWEEP_S, self._sweep_again)

    def _sweep_again(self) -> None:
        """Sweep now and then, for as long as anything is there that will expire."""
        self._sweeper = None
        self.sweep()
        if self._expiring:
            self._sweeper = self._journal.clock.call_later(_SWEEP_S, self._sweep_again)

    def _sweep_when_full(self) -> None:
        """Look for room, though not for every publish: looking at all there is takes its time."""
        now_s = self._journal.clock.monotonic_s()
        if self._expiring and now_s >= self._looked_at_s + _LOOK_S:
            self._looked_at_s = now_s
            self.sweep()

    def _weigh(self, kept: RetainedMessage, times: int) -> None:
        if kept.expires_at_ms:
            self._expiring += times
        if not kept.is_transient:
            self.count += times
            self.bytes += times * kept.size
            self.body_bytes += times * len(kept.message.body)

    def _found(self, words: list[str], literally: bool = False) -> list[_Level]:
        """Return the levels that a pattern leads to; wildcards are ordinary words if it is meant ``literally``."""
        levels = [self._root]
        for word in words:
            if word == "#" and not literally:
                levels = [below for level in levels for below in _below(level)]
            elif word == "*" and not literally:
                levels = [below for level in levels for below in level.next.values()]
            else:
                levels = [level.next[word] for level in levels if word in level.next]
        return levels


def _below(level: _Level) -> Iterator[_Level]:
    """Iterate over a level and everything under it, in order of words first seen."""
    waiting = [level]
    while waiting:
        level = waiting.pop()
        yield level
        waiting.extend(reversed(level.next.values()))
