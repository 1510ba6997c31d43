"""Retained messages by the words of their routing keys, so that a pattern finds them without looking at all others."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gateway.kernel.messages.message import Message

#: Words of a key that have a level each; what follows is one word, so that no key takes more memory. Filters that are
#: accepted have fewer, so that no word of theirs stands for one behind these but ``#``, which takes them as they are.
MOST_LEVELS: Final = 256

#: What one message costs besides its bytes, and each of its levels: keeps a limit in bytes honest for empty bodies.
_OVERHEAD: Final = 200
_LEVEL: Final = 120


@dataclass(frozen=True, slots=True)
class RetainedMessage:
    """A retained message, and when it is no longer worth anything: wall time in milliseconds, 0 for never.

    One that ``is_transient`` is the broker's own: no store has it, and it counts for no limit. ``number`` grows with
    each message that is retained.
    """

    message: Message
    expires_at_ms: int
    is_transient: bool = False
    number: int = 0

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        message, key = self.message, self.message.routing_key
        levels = min(key.count(".") + 1, MOST_LEVELS)
        return len(message.body) + len(message.header.raw) + len(key) + _OVERHEAD + levels * _LEVEL


class RetainedLevel:
    """A word of some routing keys: the words that follow it, and the message of the key that ends here.

    Most levels have one word after them or none, and need no dictionary for that.
    """

    __slots__ = ("_only_level", "_only_word", "_others", "kept")

    def __init__(self) -> None:
        self.kept: RetainedMessage | None = None
        self._only_word: str | None = None
        self._only_level: RetainedLevel | None = None
        self._others: dict[str, RetainedLevel] | None = None  # in place of the only one, from the second word on

    def after(self, word: str) -> "RetainedLevel | None":
        """Return the level of a word after this one."""
        if self._others is not None:
            return self._others.get(word)
        return self._only_level if word == self._only_word else None

    def grow(self, word: str) -> "RetainedLevel":
        """Return a new level for a word that has none."""
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
        """Take the level of a word away."""
        if self._others is not None:
            del self._others[word]
            if not self._others:
                self._others = None
        else:
            self._only_word = self._only_level = None

    def next(self) -> "list[RetainedLevel]":
        """Return the levels after this one, in the order of words first seen."""
        if self._others is not None:
            return list(self._others.values())
        return [] if self._only_level is None else [self._only_level]

    @property
    def is_bare(self) -> bool:
        """Whether nothing is kept here or below."""
        return self.kept is None and self._only_word is None and self._others is None


def words_of(key: str) -> list[str]:
    """Return the words of a key that have levels."""
    return key.split(".", MOST_LEVELS - 1)


def found_from(root: RetainedLevel, pattern: list[str]) -> Iterator[RetainedMessage | None]:
    """Iterate over what is kept for the words of a pattern; ``None`` for each level without any, as a step.

    Levels may come and go meanwhile: the walk looks at one at a time.
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
        else:  # it stands for no word, too: this level comes before those below it
            frames.append((iter(level.next()), at))
            if at + 1 == len(pattern):
                yield level.kept
            else:
                frames.append((iter([level]), at + 1))
