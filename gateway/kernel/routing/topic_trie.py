"""A trie of topic filters by word, with a wildcard for one word and one for any number of words.

Protocols differ in notation only: AMQP writes ``stock.*.nyse`` and ``stock.#``, MQTT ``stock/+/nyse`` and ``stock/#``.
The empty topic has no words, so it matches the empty filter, ``#``, ``#.#`` and so on.
"""

from collections.abc import Hashable, Iterator
from sys import intern, maxsize
from typing import Final, Generic, TypeVar

#: The maximum number of words in a filter or topic; the rest counts as one word. Each word of a filter takes a node, so
#: that a filter of 64 KB of separators took 14 MB. Protocols accept fewer words; stores of earlier versions may hold
#: more.
MOST_WORDS: Final = 1024

#: Nodes and values that a match in steps examines at once.
_STEP: Final = 64

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Node(Generic[K, V]):
    """A word of some filters. Wildcards are stored apart, because a topic may contain their letters as plain words.

    Most nodes have at most one plain word after them, and most filters one value. Storing those in the node itself
    halves the number of objects that a match reads, and reading uncached objects is most of its cost.
    """

    __slots__ = (
        "after_any",
        "after_one",
        "after_only",
        "after_word",
        "has_only_value",
        "only_key",
        "only_value",
        "only_word",
        "values",
    )
    __deletable__ = ["after_only", "only_key", "only_value"]  # required by mypyc
    after_only: "_Node[K, V]"  # set while ``only_word`` is
    only_key: K  # these two are set while ``has_only_value``
    only_value: V

    def __init__(self) -> None:
        self.only_word: str | None = None
        self.after_word: dict[str, _Node[K, V]] | None = None  # replaces ``only_word`` from the second word on
        self.after_one: _Node[K, V] | None = None
        self.after_any: _Node[K, V] | None = None
        self.has_only_value = False
        self.values: dict[K, V] | None = None  # replaces ``only_value`` from the second value on

    @property
    def is_empty(self) -> bool:
        """Whether no filter ends at this node or continues below it."""
        is_end = self.has_only_value or bool(self.values)
        return not (is_end or self.only_word is not None or self.after_word or self.after_one or self.after_any)

    def after(self, word: str) -> "_Node[K, V] | None":
        """Return the child for a plain word."""
        if word == self.only_word:
            return self.after_only
        return None if self.after_word is None else self.after_word.get(word)

    def grow(self, word: str) -> "_Node[K, V]":
        """Add a child for a plain word that has none."""
        child: _Node[K, V] = _Node()
        word = intern(word)  # one string for all nodes is cached better, and compares by identity first
        if self.after_word is not None:
            self.after_word[word] = child
        elif self.only_word is None:
            self.only_word, self.after_only = word, child
        else:
            self.after_word = {self.only_word: self.after_only, word: child}
            self.only_word = None
            del self.after_only
        return child

    def cut(self, word: str) -> None:
        """Remove the child for a plain word."""
        if self.after_word is not None:
            del self.after_word[word]
        else:
            self.only_word = None
            del self.after_only

    def put(self, key: K, value: V) -> None:
        """Store a value, replacing one with the same key."""
        if self.values is not None:
            self.values[key] = value
        elif not self.has_only_value or self.only_key == key:
            self.has_only_value, self.only_key, self.only_value = True, key, value
        else:
            self.values = {self.only_key: self.only_value, key: value}
            self._forget_only_value()

    def take(self, key: K) -> V:
        """Remove a value and return it. :raises KeyError: when there is none with this key."""
        if self.values is not None:
            return self.values.pop(key)
        if not self.has_only_value or self.only_key != key:
            raise KeyError(key)
        value = self.only_value
        self._forget_only_value()
        return value

    def _forget_only_value(self) -> None:
        self.has_only_value = False
        del self.only_key, self.only_value


class TooManyMatches(Exception):
    """So many filters may match a topic that the match should be made in steps."""


class TopicTrie(Generic[K, V]):
    """Values by topic filter. Each value of a filter has a key: a binding, or the subscriber.

    Matching visits each node at most once a word, so its time is never exponential.
    """

    __slots__ = ("_any", "_changes", "_one", "_root", "_separator")

    def __init__(self, separator: str = ".", one: str = "*", any: str = "#") -> None:
        self._separator = separator
        self._one = one
        self._any = any
        self._root: _Node[K, V] = _Node()
        self._changes = 0

    def insert(self, filter: str, key: K, value: V) -> None:
        """Store ``value`` under ``filter``, replacing one with the same key."""
        self._changes += 1
        node = self._root
        for word in self._words(filter):
            node = self._child(node, word) or self._grow(node, word)
        node.put(key, value)

    def remove(self, filter: str, key: K) -> V:
        """Remove a value and return it, with the nodes that become empty. :raises KeyError: when it does not exist."""
        self._changes += 1
        words, path = self._words(filter), [self._root]
        for word in words:
            child = self._child(path[-1], word)
            if child is None:
                raise KeyError(key)
            path.append(child)
        value = path[-1].take(key)
        while words and path.pop().is_empty:
            self._cut(path[-1], words.pop())
        return value

    def at(self, filter: str) -> list[V]:
        """Return the values of exactly this filter."""
        node = self._root
        for word in self._words(filter):
            child = self._child(node, word)
            if child is None:
                return []
            node = child
        if node.has_only_value:
            return [node.only_value]
        return [] if node.values is None else list(node.values.values())

    def match(self, topic: str, begins_with_its_word: bool = False, most: int = maxsize) -> list[V]:
        """Return the values of all matching filters, one for each filter and key.

        With ``begins_with_its_word``, ignore filters that begin with a wildcard.

        :raises TooManyMatches: if more than ``most`` filters are to be followed at once, or one has more values.
        """
        level = [self._root]
        words = self._words(topic)
        if begins_with_its_word:
            first = self._root.after(words[0]) if words else None
            level, words = [] if first is None else [first], words[1:]
        open_ended: dict[_Node[K, V], None] = {}  # the nodes after a ``#``: once reached, they match every further word
        for word in words:
            reached = []
            for node in level:
                if node.only_word == word:
                    reached.append(node.after_only)
                elif node.after_word is not None:
                    child = node.after_word.get(word)
                    if child is not None:
                        reached.append(child)
                child = node.after_one
                if child is not None:
                    reached.append(child)
                child = node.after_any
                if child is not None and child not in open_ended:
                    open_ended[child] = None
                    level.append(child)  # ``#`` also matches no word: the loop reaches this node before it ends
            level = [*reached, *open_ended] if open_ended else reached
            if len(level) > most:
                raise TooManyMatches
        found: list[V] = []
        for node in level:
            if node.has_only_value:
                found.append(node.only_value)
            elif node.values is not None:
                if len(node.values) > most:
                    raise TooManyMatches
                found += node.values.values()
            child = node.after_any
            if child is not None and child not in open_ended:
                open_ended[child] = None
                level.append(child)
        return found

    def matching(self, topic: str) -> "Iterator[V | None]":
        """Yield the values of all matching filters, and ``None`` where filters may change; begin again if they did.

        The third attempt matches at once. A value may come several times.
        """
        for _ in range(2):
            changes = self._changes
            for found in self._visits(topic):
                yield found
                if changes != self._changes:
                    break
            else:
                return
        yield from self.match(topic)

    def _visits(self, topic: str) -> "Iterator[V | None]":
        """Yield what ``match`` returns, and ``None`` after some nodes and values; filters may not change meanwhile."""
        level = [self._root]
        open_ended: dict[_Node[K, V], None] = {}
        visited = 0
        for word in self._words(topic):
            reached = []
            for node in level:
                child = node.after(word)
                if child is not None:
                    reached.append(child)
                if node.after_one is not None:
                    reached.append(node.after_one)
                child = node.after_any
                if child is not None and child not in open_ended:
                    open_ended[child] = None
                    level.append(child)
                visited += 1
                if visited % _STEP == 0:
                    yield None
            level = [*reached, *open_ended] if open_ended else reached
        for node in level:
            if node.has_only_value:
                yield node.only_value
            elif node.values is not None:
                for number, value in enumerate(node.values.values(), 1):
                    yield value
                    if number % _STEP == 0:
                        yield None
            child = node.after_any
            if child is not None and child not in open_ended:
                open_ended[child] = None
                level.append(child)
            visited += 1
            if visited % _STEP == 0:
                yield None

    def __bool__(self) -> bool:
        return not self._root.is_empty

    def _words(self, topic: str) -> list[str]:
        return topic.split(self._separator, MOST_WORDS - 1) if topic else []

    def _child(self, node: _Node[K, V], word: str) -> _Node[K, V] | None:
        if word == self._one:
            return node.after_one
        if word == self._any:
            return node.after_any
        return node.after(word)

    def _grow(self, node: _Node[K, V], word: str) -> _Node[K, V]:
        if word == self._one:
            node.after_one = _Node()
            return node.after_one
        if word == self._any:
            node.after_any = _Node()
            return node.after_any
        return node.grow(word)

    def _cut(self, node: _Node[K, V], word: str) -> None:
        if word == self._one:
            node.after_one = None
        elif word == self._any:
            node.after_any = None
        else:
            node.cut(word)
