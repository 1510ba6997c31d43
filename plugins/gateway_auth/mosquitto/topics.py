"""Topics and filters of MQTT in access rules, as sequences of levels."""

import re
from typing import Final, TypeAlias

from gateway.api import ConfigurationError

Levels: TypeAlias = tuple[str, ...]
"""The levels of a topic or a filter; ``+`` and ``#`` are wildcards."""

_ESCAPED: Final = re.compile(r"%25|%2E|%2A")
_UNESCAPED: Final = {"%25": "%", "%2E": ".", "%2A": "*"}


def levels_of(filter: str) -> Levels:
    """Return the levels of a filter. :raises ConfigurationError: if it is invalid (4.7.1)."""
    levels = tuple(filter.split("/"))
    misplaced = any(len(level) > 1 and ("+" in level or "#" in level) for level in levels)
    if not filter or "#" in levels[:-1] or misplaced:
        raise ConfigurationError(f"{filter!r} is not a valid topic filter")
    return levels


def levels_of_key(key: str) -> Levels:
    """Return the levels of the topic or filter that became a routing key or a binding key."""
    words = ("+" if word == "*" else word for word in key.split("."))
    return tuple(_ESCAPED.sub(lambda found: _UNESCAPED[found[0]], word) if "%" in word else word for word in words)


def covers(rule: Levels, asked: Levels) -> bool:
    """Whether each topic that matches ``asked``, a topic or a filter, matches ``rule``."""
    if asked[0].startswith("$") and rule[0] in ("+", "#"):
        return False  # MQTT-4.7.2-1
    for at, level in enumerate(rule):
        if level == "#":
            return True
        if at == len(asked) or asked[at] == "#" or (level not in ("+", asked[at])):
            return False
    return len(rule) == len(asked)


def overlaps(rule: Levels, asked: Levels) -> bool:
    """Whether a topic may match both; a level with a dot may be two, depending on how topics are mapped to keys."""
    dotted = tuple(part for level in rule for part in level.split("."))
    return _overlap(rule, asked) or (dotted != rule and _overlap(dotted, asked))


def _overlap(one: Levels, other: Levels) -> bool:
    for at in range(max(len(one), len(other))):
        ours, theirs = (levels[at] if at < len(levels) else None for levels in (one, other))
        if "#" in (ours, theirs):
            return True  # "a/#" matches "a", too
        if ours is None or theirs is None:
            return False
        if ours != theirs and "+" not in (ours, theirs):
            return False
    return True
