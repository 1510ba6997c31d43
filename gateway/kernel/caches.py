"""Bounded caches: dicts that are cleared when they are full.

A lookup is a plain ``dict.get``, without a call, because most caches are read for each message. Dropping single entries
would need an order of use, which costs on each lookup; a full cache is rare, and refilling it is cheap.
"""

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def remember(cache: dict[K, V], key: K, value: V, most: int) -> V:
    """Add a value to a cache of ``most`` entries, which is cleared before if it is full; return the value."""
    if len(cache) >= most:
        cache.clear()
    cache[key] = value
    return value
