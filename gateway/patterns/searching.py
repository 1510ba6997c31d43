"""Search of patterns and texts in the bodies and headers of messages, with bounded time for each."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeAlias

from gateway.kernel.errors import PreconditionFailed
from gateway.patterns.engine import compiled_part, require_sound
from gateway.patterns.lookaround import parts_of

Matches: TypeAlias = Callable[[bytes], bool]
"""Returns whether a text, in UTF-8, matches."""

#: The bytes at the beginning of a text that a pattern is compared with.
LONGEST_SEARCHED: Final = 64 * 1024

#: Instructions of RE2 in a pattern. The worst pattern of this size takes about 20 ms for ``LONGEST_SEARCHED``.
_MOST_INSTRUCTIONS: Final = 512

#: Memory of a compiled pattern in bytes; RE2 is faster the more of it its automaton may use.
_MOST_MEMORY: Final = 2**20


def containing(text: str) -> Matches:
    """Return a search for a text, anywhere and in the whole of the searched text."""
    wanted = text.encode("utf-8", "surrogatepass")
    return lambda data: wanted in data


@lru_cache(maxsize=64)
def compile_search(pattern: str) -> Matches:
    """Compile a pattern, cached, that is searched in the first ``LONGEST_SEARCHED`` bytes of a text.

    :raises PreconditionFailed: if it is not a regular expression, RE2 does not support it, or it is too large.
    """
    require_sound(pattern)
    conditions: list[tuple[Callable[[bytes], Any], bool]] = []
    for part in parts_of(pattern):
        compiled = compiled_part(part, pattern, False, _MOST_MEMORY)
        if compiled.programsize > _MOST_INSTRUCTIONS:
            size = f"it has {compiled.programsize} instructions, at most {_MOST_INSTRUCTIONS} are allowed"
            raise PreconditionFailed(f"the pattern '{pattern[:80]}' is too large to search messages: {size}")
        conditions.append((compiled.search, part.is_wanted))

    def matches(data: bytes) -> bool:
        searched = data[:LONGEST_SEARCHED]
        return all((search(searched) is not None) is is_wanted for search, is_wanted in conditions)

    return matches
