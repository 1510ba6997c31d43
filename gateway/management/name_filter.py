"""Which names of a list are wanted: those that hold a text, or that match a pattern (``use_regex``).

Whoever may read a list may send a pattern, and while it is matched nobody is served. So there are three bounds: how
long it is, how large it becomes when its repeats are written out, and how long all names of one list may take.
"""

import re
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import regex

from gateway.management.errors import HttpError, bad_request

NameFilter: TypeAlias = Callable[[str], bool]

#: Characters in a pattern.
LONGEST_PATTERN: Final = 500

#: Seconds of computing that one pattern may take, for all names of a list together.
BUDGET_S: Final = 0.25

#: Seconds of each search that cost nothing of it, several times what most take: a list is not refused for its length.
_FREE_S: Final = 0.000_01

#: Nodes that ``regex`` may make of a pattern. It writes ``a{3}`` out as ``aaa``, so that ten characters or so, such as
#: ``(.{999}){999}``, would take all memory before anything is matched. To read 5,000 empty groups takes it 0.2 seconds.
_LARGEST: Final = 10_000

#: A count of repeats, and what stands before it.
_COUNT: Final = re.compile(r"(.?)\{(\d+)")

#: What ends a part that may have counts inside it: a group, or a repeat whose own count was 1.
_AFTER_MANY: Final = frozenset(["", *")}?*+"])

#: The flag ``x`` would allow spaces and comments in the middle of a count, where nobody sees how large it is.
_VERBOSE: Final = re.compile(r"\(\?[A-Za-z0-9-]*x")


def name_filter(query: Mapping[str, str]) -> NameFilter | None:
    """Return what tells wanted names, for one list; ``None`` where a query wants all. Case never matters.

    :raises HttpError: for a pattern that is none or is too large, and from what is returned when it takes too long.
    """
    name = query.get("name", "")
    if not name:
        return None
    if query.get("use_regex") == "true":
        return NamePattern(name).admits
    search = re.compile(re.escape(name), re.IGNORECASE).search
    return lambda other: search(other) is not None


class NamePattern:
    """A pattern and the computing time it has left, ``budget_s`` at first; each list needs one of its own.

    ``clock`` tells seconds of computing, not of the day: that others keep the machine busy is no fault of a pattern.
    """

    def __init__(self, pattern: str, budget_s: float = BUDGET_S, clock: Callable[[], float] = time.thread_time) -> None:
        _require_small(pattern)
        try:
            # Nothing kept for the next time: these are large, and each user's own.
            compiled = regex.compile(pattern, regex.IGNORECASE, cache_pattern=False)
        except (regex.error, RecursionError) as error:
            reason = str(error) if isinstance(error, regex.error) else "too many groups inside each other"
            raise bad_request(f"'name' is not a regular expression: {reason}") from None
        self._search = compiled.search
        self._left_s = budget_s
        self._clock = clock

    def admits(self, name: str) -> bool:
        """Whether a name is wanted. :raises HttpError: when the time is used up."""
        began_s = self._clock()
        try:
            is_wanted = self._search(name, timeout=self._left_s) is not None
        except TimeoutError:
            raise _too_long() from None
        self._left_s -= max(0.0, self._clock() - began_s - _FREE_S)
        if self._left_s <= 0:
            raise _too_long()
        return is_wanted


def _too_long() -> HttpError:
    return bad_request("'name' is a regular expression that takes too long to match")


def _require_small(pattern: str) -> None:
    """Insist that a pattern can be compiled in little time and memory. :raises HttpError: when it cannot."""
    if len(pattern) > LONGEST_PATTERN:
        raise bad_request(f"'name' is a regular expression of more than {LONGEST_PATTERN} characters")
    if _VERBOSE.search(pattern):
        raise bad_request("'name' is a regular expression with the flag x, which is not for lists")
    if _most_nodes(pattern) > _LARGEST:
        raise bad_request("'name' is a regular expression that repeats too much")


def _most_nodes(pattern: str) -> int:
    """Return what the nodes of a pattern, with its repeats written out, are certainly no more than.

    Counts after single characters add up. Those after groups multiply, as if each stood around all the others: which
    brackets are groups, and which are text, is for the library to know.
    """
    added, multiplied = 0, 1
    for before, digits in _COUNT.findall(pattern):
        if before in _AFTER_MANY:
            multiplied *= max(1, int(digits))
        else:
            added += int(digits)
    return len(pattern) * max(1, added) * multiplied
