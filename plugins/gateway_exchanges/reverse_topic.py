"""x-rtopic: routes to every binding whose key, plain words, matches the routing key, a pattern of words.

It is the topic exchange with the roles of the keys exchanged: publishers send patterns with ``*`` and ``#``, and
wildcards in binding keys are plain words.
"""

from collections.abc import Iterator

from gateway.api import Arguments, Binding, Destination, ExchangeTypes, Message, hookimpl


class _Level:
    """A word of some binding keys: the words that follow it, and the bindings whose keys end here."""

    __slots__ = ("destinations", "next_by_word")

    def __init__(self) -> None:
        self.next_by_word: dict[str, _Level] = {}
        self.destinations: dict[Binding, Destination] = {}


class ReverseTopic:
    """Like ``topic``, but the routing key is the pattern. It finds binding keys in a tree by their words.

    A pattern that starts with a wildcard examines the whole tree.
    """

    routes_by_key = True

    def __init__(self, arguments: Arguments) -> None:
        self._root = _Level()

    def bind(self, binding: Binding) -> None:
        """Add a binding."""
        level = self._root
        for word in _words(binding.routing_key):
            level = level.next_by_word.setdefault(word, _Level())
        level.destinations[binding] = binding.destination

    def unbind(self, binding: Binding) -> None:
        """Remove a binding, and the words that only its key has."""
        words, path = _words(binding.routing_key), [self._root]
        for word in words:
            path.append(path[-1].next_by_word[word])
        del path[-1].destinations[binding]
        while words and not path[-1].destinations and not path[-1].next_by_word:
            path.pop()
            del path[-1].next_by_word[words.pop()]

    def route(self, message: Message) -> list[Destination]:
        """Return the destinations of a message."""
        pattern = _Pattern(message.routing_key)
        found: list[Destination] = []
        levels = [(self._root, pattern.start)]
        while levels:
            level, places = levels.pop()
            if places & pattern.end:
                found += level.destinations.values()
            levels += pattern.steps(level, places)
        return found


class _Pattern:
    """A routing key with wildcards. A set of places in it is a number with a bit for each.

    Each level of the tree is visited once with all places that lead to it: a pattern with many ``#`` is not slow.
    """

    __slots__ = ("_any", "_one", "_places_by_word", "_words", "end", "start")

    def __init__(self, routing_key: str) -> None:
        self._words: list[str] = []
        for word in _words(routing_key):
            if not (word == "#" and self._words and self._words[-1] == "#"):
                self._words.append(word)
        self._places_by_word: dict[str, int] = {}
        for place, word in enumerate(self._words):
            self._places_by_word[word] = self._places_by_word.get(word, 0) | 1 << place
        self._one = self._places_by_word.pop("*", 0)
        self._any = self._places_by_word.pop("#", 0)
        self.end = 1 << len(self._words)
        self.start = self._with_skipped(1)

    def steps(self, level: _Level, places: int) -> Iterator[tuple[_Level, int]]:
        """Yield the levels after one that is reached at these places, with the places after them."""
        if places & (self._one | self._any):
            for word, following in level.next_by_word.items():
                if after := self._after(word, places):
                    yield following, after
            return
        for word, marked in self._places_by_word.items():
            if places & marked and (named := level.next_by_word.get(word)) is not None:
                yield named, self._after(word, places)

    def _after(self, word: str, places: int) -> int:
        """Return the places after a word."""
        matched = places & (self._places_by_word.get(word, 0) | self._one)
        return self._with_skipped(matched << 1 | places & self._any)

    def _with_skipped(self, places: int) -> int:
        """Add the places after each ``#``, which also matches no word."""
        return places | (places & self._any) << 1


def _words(key: str) -> list[str]:
    """Return the words of a key; none for an empty key."""
    return key.split(".") if key else []


@hookimpl
def gateway_exchange_types() -> ExchangeTypes:
    """Offer ``x-rtopic``."""
    return {"x-rtopic": ReverseTopic}
