"""A tree of retained messages by the words of their routing keys, so that patterns are matched without a full scan."""

from collections.abc import Iterator
from typing import Final

from gateway.kernel.messages.message import Message

#: The maximum number of levels of a key; the rest is one word, which bounds the memory of a key. Accepted filters have
#: fewer words, so only their ``#`` can match that last word.
MOST_LEVELS: Final = 256

#: The overhead of a message and of each of its levels, in bytes: so that a limit in bytes also bounds empty messages.
_OVERHEAD: Final = 200
_LEVEL: Final = 120


class RetainedMessage:
    """A retained message and its expiry: wall time in milliseconds, 0 for never.

    A transient one belongs to this run of the broker: it is not stored and counts for no limit. ``number`` grows with
    each retained message. ``size`` is approximate, in bytes; it is computed once, because storing a message needs it
    twice, and that of the message it replaces.
    """

    __slots__ = ("expires_at_ms", "is_transient", "message", "number", "size")

    def __init__(self, message: Message, expires_at_ms: int, *, number: int, is_transient: bool = False) -> None:
        self.message = message
        self.expires_at_ms = expires_at_ms
        self.is_transient = is_transient
        self.number = number
        key = message.routing_key
        levels = min(key.count(".") + 1, MOST_LEVELS)
        self.size = len(message.body) + len(message.header.raw) + len(key) + _OVERHEAD + levels * _LEVEL


class RetainedLevel:
    """A word of some routing keys: the words that follow it, and the message of the key that ends here.

    Most levels have at most one word after them, and need no dictionary for it.
    """

    __slots__ = ("_only_level", "_only_word", "_others", "kept")

    def __init__(self) -> None:
        self.kept: RetainedMessage | None = None
        self._only_word: str | None = None
        self._only_level: RetainedLevel | None = None
        self._others: dict[str, RetainedLevel] | None = None  # replaces ``_only_word`` from the second word on

    def after(self, word: str) -> "RetainedLevel | None":
        """Return the level of a following word."""
        if self._others is not None:
            return self._others.get(word)
        return self._only_level if word == self._only_word else None

    def grow(self, word: str) -> "RetainedLevel":
        """Add a level for a following word that has none."""
        level = RetainedLevel()
        if self._others is not None:
            self._others[word] = level
        elif self._only_word is None or self._only_level is None:
            self._only_word, self._only_level = word, level
        else:
            self._others = {self._only_word: self._only_level, word: level}
            self._only_word = self._only_level = None
        return level

    def cut(self, word: str) -> None:
        """Remove the level of a following word."""
        if self._others is not None:
            del self._others[word]
            if not self._others:
                self._others = None
        else:
            self._only_word = self._only_level = None

    def next(self) -> "list[RetainedLevel]":
        """Return the following levels, in order of insertion."""
        if self._others is not None:
            return list(self._others.values())
        return [] if self._only_level is None else [self._only_level]

    @property
    def is_bare(self) -> bool:
        """Whether nothing is retained at this level or below."""
        return self.kept is None and self._only_word is None and self._others is None


def words_of(key: str) -> list[str]:
    """Return the words of a key, one per level."""
    return key.split(".", MOST_LEVELS - 1)


def found_from(root: RetainedLevel, pattern: list[str]) -> Iterator[RetainedMessage | None]:
    """Iterate over the messages that match the words of a pattern; ``None`` for each level without one, as a step.

    Levels may be added and removed during the iteration, which reads one at a time.
    """
    frames: list[tuple[Iterator[RetainedLevel], int]] = [(iter([root]), 0)]
    while frames:
        levels, at = frames[-1]
        level = next(levels, None)
        if level is None:
            frames.pop()
        elif at == len(pattern):
            yield level.kept
        elif pattern[at] == "*":
            frames.append((iter(level.next()), at + 1))
        elif pattern[at] != "#":
            child = level.after(pattern[at])
            if child is not None:
                frames.append((iter([child]), at + 1))
        else:  # it also matches no word: this level comes before those below it
            frames.append((iter(level.next()), at))
            if at + 1 == len(pattern):
                yield level.kept
            else:
                frames.append((iter([level]), at + 1))
