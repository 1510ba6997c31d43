"""Splitting of lookaround at the ends of a pattern into separate searches.

``^(?!amq\\.)shop`` has two conditions on the start of a name: it begins with ``shop``, and not with ``amq.``. Both
are anchored at the same position, so two searches are equivalent to one with lookahead. The same holds for a
lookbehind before the end: ``\\.tmp`` in ``^shop.*(?<!\\.tmp)$``. Lookaround anywhere else stays in its part, and
the engine refuses it.
"""

import re
from typing import Final, NamedTuple

#: Anchors of a search; flags that would move an anchor are left to the engine.
_START: Final = re.compile(r"(\(\?[is]+\))?(\^|\\A)")
_END: Final = re.compile(r"(\$|\\z)$")
_AHEAD: Final = re.compile(r"\(\?([=!])")
_BEHIND: Final = re.compile(r"\(\?<([=!])")


class Part(NamedTuple):
    """An expression that must be found, or must not be found."""

    expression: str
    is_wanted: bool


def parts_of(pattern: str) -> list[Part]:
    """Return the searches whose combined results equal the result of the pattern."""
    groups = _groups(pattern) if _AHEAD.search(pattern) or _BEHIND.search(pattern) else None
    if groups is None:
        return [Part(pattern, True)]
    start = _START.match(pattern)
    parts: list[Part] = []
    first, last = 0, len(pattern)
    if start is not None:
        first = start.end()
        while (looking := _AHEAD.match(pattern, first)) and not _is_repeated(pattern, groups[first] + 1):
            parts.append(Part(f"{start[0]}(?:{pattern[looking.end() : groups[first]]})", looking[1] == "="))
            first = groups[first] + 1
    end = _END.search(pattern)
    if end is not None:
        flags = start[1] or "" if start is not None else ""
        last = end.start()
        group_by_end = {closed: opened for opened, closed in groups.items() if opened >= first}
        while (opened := group_by_end.get(last - 1)) is not None and (looking := _BEHIND.match(pattern, opened)):
            parts.append(Part(f"{flags}(?:{pattern[looking.end() : last - 1]}){end[0]}", looking[1] == "="))
            last = opened
    rest = pattern[first:last]
    return [Part((start[0] if start else "") + rest + (end[0] if end else ""), True), *parts]


def _is_repeated(pattern: str, place: int) -> bool:
    return pattern[place : place + 1] in ("*", "+", "?", "{")


def _groups(pattern: str) -> dict[int, int] | None:
    """Return the bounds of each group; ``None`` for alternatives at the top level, which have ends of their own."""
    groups: dict[int, int] = {}
    opened: list[int] = []
    place = 0
    while place < len(pattern):
        mark = pattern[place]
        if mark == "\\":
            place += 1
        elif mark == "[":
            place = _end_of_set(pattern, place)
        elif mark == "(":
            opened.append(place)
        elif mark == ")" and opened:
            groups[opened.pop()] = place
        elif mark == "|" and not opened:
            return None
        place += 1
    return None if opened or "\\Q" in pattern else groups


def _end_of_set(pattern: str, place: int) -> int:
    """Return the end of a character set, or of the pattern if the set is not closed."""
    place += 2 if pattern[place + 1 : place + 2] == "^" else 1
    if pattern[place : place + 1] == "]":
        place += 1
    while place < len(pattern) and pattern[place] != "]":
        if pattern[place] == "\\":
            place += 1
        elif pattern[place : place + 2] == "[:":
            place = max(place, pattern.find(":]", place) + 1)
        place += 1
    return place
