"""Which names of a list are wanted: those that hold a text, or that match a pattern (``use_regex``).

Any user who may read a list may send a pattern. It is matched by RE2, in time linear in a name (``gateway.patterns``);
how long it is and how long all names of one list may take is bounded besides.
"""

import re
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from gateway.kernel.errors import PreconditionFailed
from gateway.management.http.errors import HttpError, bad_request
from gateway.patterns import compile_pattern_caseless

NameFilter: TypeAlias = Callable[[str], bool]

#: Characters in a pattern.
MAX_PATTERN_LENGTH: Final = 500

#: Seconds of computing that one pattern may take, for all names of a list together.
BUDGET_S: Final = 0.25

#: Seconds of each search that cost nothing of it, several times what most take: a list is not refused for its length.
_FREE_PER_NAME_S: Final = 0.000_01


def name_filter(query: Mapping[str, str]) -> NameFilter | None:
    """Return what tells wanted names, for one list; ``None`` where a query wants all. Case never matters.

    :raises HttpError: for a pattern that is none or is too large, and from what is returned when it takes too long.
    """
    name = query.get("name", "")
    if not name:
        return None
    if query.get("use_regex") == "true":
        return NamePattern(name).matches
    search = re.compile(re.escape(name), re.IGNORECASE).search
    return lambda other: search(other) is not None


class NamePattern:
    """A pattern and the computing time it has left, ``budget_s`` at first; each list needs one of its own.

    ``clock`` tells seconds of computing, not of the day: that others keep the machine busy is no fault of a pattern.
    """

    def __init__(self, pattern: str, budget_s: float = BUDGET_S, clock: Callable[[], float] = time.thread_time) -> None:
        if len(pattern) > MAX_PATTERN_LENGTH:
            raise bad_request(f"'name' is a regular expression of more than {MAX_PATTERN_LENGTH} characters")
        try:
            self._regex_matches = compile_pattern_caseless(pattern).matches
        except PreconditionFailed as error:
            raise bad_request(f"'name': {error}") from None
        self._remaining_s = budget_s
        self._clock = clock

    def matches(self, name: str) -> bool:
        """Whether a name is wanted. :raises HttpError: when the time is used up."""
        started_s = self._clock()
        is_wanted = self._regex_matches(name)
        self._remaining_s -= max(0.0, self._clock() - started_s - _FREE_PER_NAME_S)
        if self._remaining_s <= 0:
            raise _too_long()
        return is_wanted


def _too_long() -> HttpError:
    return bad_request("'name' is a regular expression that takes too long to match")
