"""Which topic filters match a topic: a trie over words, where one wildcard stands for a word and one for any number.

Every protocol has the idea and its own letters: AMQP writes ``stock.*.nyse`` and ``stock.#``, MQTT ``stock/+/nyse`` and
``stock/#``. The empty topic has no words, so only ``#``, ``#.#`` and so on match it, and the empty filter.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class _Node(Generic[K, V]):
    """A word of some filters. Wildcards have places of their own: a topic may hold their letters as plain words."""

    __slots__ = ("after_any", "after_one", "after_word", "values")

    def __init__(self) -> None:
        self.after_word: dict[str, _Node[K, V]] = {}
        self.after_one: _Node[K, V] | None = None
        self.after_any: _Node[K, V] | None = None
        self.values: dict[K, V] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no filter ends here or passes through."""
        return not (self.values or self.after_word or self.after_one or self.after_any)


class TopicTrie(Generic[K, V]):
    """Values by topic filter. Under one filter each value has a key: a binding, or the subscriber.

    Matching visits each node at most once a word, so no filter and no topic makes it exponential.
    """

    __slots__ = ("_any", "_one", "_root", "_separator")

    def __init__(self, separator: str = ".", one: str = "*", any: str = "#") -> None:
        self._separator = separator
        self._one = one
        self._any = any
        self._root: _Node[K, V] = _Node()

    def insert(self, filter: str, key: K, value: V) -> None:
        """Keep ``value`` under ``filter``, in place of the one that had the same key there."""
        node = self._root
        for word in self._words(filter):
            node = self._child(node, word) or self._grow(node, word)
        node.values[key] = value

    def remove(self, filter: str, key: K) -> V:
        """Take the value out again, with the nodes that nothing else needs. :raises KeyError: when it is not there."""
        words, path = self._words(filter), [self._root]
        for word in words:
            child = self._child(path[-1], word)
            if child is None:
                raise KeyError(key)
            path.append(child)
        value = path[-1].values.pop(key)
        while words and path.pop().is_empty:
            self._cut(path[-1], words.pop())
        return value

    def match(self, topic: str) -> list[V]:
        """Return the values of all filters that match, one for each filter and key."""
        level = [self._root]
        open_ended: dict[_Node[K, V], None] = {}  # the nodes behind a ``#``: once reached, they take every further word
        for word in self._words(topic):
            reached = []
            for node in level:
                child = node.after_word.get(word)
                if child is not None:
                    reached.append(child)
                child = node.after_one
                if child is not None:
                    reached.append(child)
                child = node.after_any
                if child is not None and child not in open_ended:
                    open_ended[child] = None
                    level.append(child)  # ``#`` also stands for no word: the loop comes to this node before it ends
            level = [*reached, *open_ended] if open_ended else reached
        found: list[V] = []
        for node in level:
            if node.values:
                found += node.values.values()
            child = node.after_any
            if child is not None and child not in open_ended:
                open_ended[child] = None
                level.append(child)
        return found

    def __bool__(self) -> bool:
        return not self._root.is_empty

    def _words(self, topic: str) -> list[str]:
        return topic.split(self._separator) if topic else []

    def _child(self, node: _Node[K, V], word: str) -> _Node[K, V] | None:
        if word == self._one:
            return node.after_one
        if word == self._any:
            return node.after_any
        return node.after_word.get(word)

    def _grow(self, node: _Node[K, V], word: str) -> _Node[K, V]:
        child: _Node[K, V] = _Node()
        if word == self._one:
            node.after_one = child
        elif word == self._any:
            node.after_any = child
        else:
            node.after_word[word] = child
        return child

    def _cut(self, node: _Node[K, V], word: str) -> None:
        if word == self._one:
            node.after_one = None
        elif word == self._any:
            node.after_any = None
        else:
            del node.after_word[word]
