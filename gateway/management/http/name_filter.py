"""Filters of names in listings: by substring, or by pattern (``use_regex``).

Every user may send a pattern. RE2 matches it in time linear in the name (``gateway.patterns``); the length of the
pattern and the total time for one listing are limited too.
"""

import re
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from gateway.kernel.errors import PreconditionFailed
from gateway.management.http.errors import HttpError, bad_request
from gateway.patterns import compile_pattern_caseless

NameFilter: TypeAlias = Callable[[str], bool]

#: Maximum length of a pattern, in characters.
MAX_PATTERN_LENGTH: Final = 500

#: Computing time of one pattern for all names of a listing, in seconds.
BUDGET_S: Final = 0.25

#: Time of each search that is not counted, several times that of most searches: long listings are not refused.
_FREE_PER_NAME_S: Final = 0.000_01


def name_filter(query: Mapping[str, str]) -> NameFilter | None:
    """Return the filter of one listing; ``None`` if the query has none. Case is ignored.

    :raises HttpError: for a pattern that is invalid or too long; the filter raises it if matching takes too long.
    """
    name = query.get("name", "")
    if not name:
        return None
    if query.get("use_regex") == "true":
        return NamePattern(name).matches
    search = re.compile(re.escape(name), re.IGNORECASE).search
    return lambda other: search(other) is not None


class NamePattern:
    """A pattern and its remaining computing time, at first ``budget_s``; each listing needs its own.

    ``clock`` measures the time of this thread, so that the load of other processes does not count.
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
        """Return whether a name matches. :raises HttpError: if the time is used up."""
        started_s = self._clock()
        is_wanted = self._regex_matches(name)
        self._remaining_s -= max(0.0, self._clock() - started_s - _FREE_PER_NAME_S)
        if self._remaining_s <= 0:
            raise _too_long()
        return is_wanted


def _too_long() -> HttpError:
    return bad_request("'name' is a regular expression that takes too long to match")
