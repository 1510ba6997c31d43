"""Patterns compiled by RE2, whose searches take time linear in the text for any pattern (ADR 0016).

RabbitMQ reads patterns as PCRE and matches them anywhere in a name unless they are anchored. RE2 has the same
syntax except for constructs that need backtracking: backreferences, atomic groups, possessive repeats, conditions
and lookaround. Lookaround at either end of a pattern is split off (``lookaround.py``); all others are refused by
name.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, TypeAlias

import re2

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.patterns import NOTHING, Pattern
from gateway.patterns.literals import literal_pattern
from gateway.patterns.lookaround import Part, parts_of

#: Bytes in a pattern.
LONGEST_PATTERN: Final = 4096

#: Most memory of a compiled pattern, in bytes. A pattern of this size searches a name of 255 bytes in about 5 ms.
_MOST_MEMORY: Final = 128 * 1024

#: A repeat count so large that RE2 reads it as literal text.
_LARGE_REPEAT: Final = re.compile(r"\{[0-9]*,?[0-9]{5,}\}")

Search: TypeAlias = Callable[[bytes], object]
"""Returns the match, or ``None``."""

#: Names of the constructs that RE2 does not support, by the beginning of their syntax.
_UNSUPPORTED: Final = (
    ("(?<=", "lookbehind"),
    ("(?<!", "lookbehind"),
    ("(?=", "lookahead"),
    ("(?!", "lookahead"),
    ("(?>", "an atomic group"),
    ("(?(", "a condition"),
    ("(?|", "a branch reset"),
    ("(?#", "a comment"),
    ("(?R", "recursion"),
    ("(?&", "recursion"),
    ("(?P", "a backreference or recursion"),
)


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Pattern:
    """Compile a pattern, cached; the empty pattern matches nothing.

    :raises PreconditionFailed: if it is not a regular expression, or RE2 does not support it, or it is too large.
    """
    require_sound(pattern)
    return literal_pattern(pattern) or _compiled(pattern or NOTHING, is_caseless=False)


def compile_pattern_caseless(pattern: str) -> Pattern:
    """Compile a case-insensitive pattern; raises as ``compile_pattern`` does."""
    require_sound(pattern)
    return _compiled(pattern, is_caseless=True)


class _Conditions:
    """Matches if each of several searches succeeds, or fails, as its part of the pattern requires."""

    __slots__ = ("_conditions",)

    def __init__(self, conditions: list[tuple[Search, bool]]) -> None:
        self._conditions = conditions

    def matches(self, text: str) -> bool:
        """Return whether every condition holds for the text."""
        data = text.encode("utf-8", "surrogatepass")
        return all((search(data) is not None) is is_wanted for search, is_wanted in self._conditions)


def _compiled(pattern: str, *, is_caseless: bool) -> Pattern:
    parts = parts_of(pattern)
    return _Conditions([(_search(part, pattern, is_caseless), part.is_wanted) for part in parts])


def require_sound(pattern: str) -> None:
    """Refuse patterns that the engine cannot process or would read as literal text."""
    try:
        size = len(pattern.encode())
    except UnicodeEncodeError:
        raise PreconditionFailed(f"invalid regular expression {ascii(pattern)[:80]}: it is not valid Unicode") from None
    if size > LONGEST_PATTERN:
        shown = f"{pattern[:40]}..."
        reason = f"it has {size} bytes, at most {LONGEST_PATTERN} are allowed"
        raise PreconditionFailed(f"invalid regular expression '{shown}': {reason}")
    if (repeat := _LARGE_REPEAT.search(pattern)) is not None:
        raise PreconditionFailed(f"invalid regular expression '{pattern}': invalid repetition size: {repeat[0]}")


def _search(part: Part, whole: str, is_caseless: bool) -> Search:
    search: Search = compiled_part(part, whole, is_caseless, _MOST_MEMORY).search
    return search


def compiled_part(part: Part, whole: str, is_caseless: bool, most_memory: int) -> Any:  # re2's type is private
    """Compile a part of a pattern. :raises PreconditionFailed: if RE2 does not support it, or it is too large."""
    options = re2.Options()
    options.max_mem = most_memory
    options.never_capture = True
    options.log_errors = False
    options.case_sensitive = not is_caseless
    try:
        return re2.compile(part.expression, options)
    except re2.error as error:
        raise PreconditionFailed(f"invalid regular expression '{whole}': {_reason(error)}") from None


def _reason(error: re2.error) -> str:
    """Return RE2's error as text; name constructs that other engines accept."""
    reason = error.args[0]
    text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
    culprit = text.rpartition(": ")[2]
    for beginning, name in _UNSUPPORTED:
        if culprit.startswith(beginning):
            return f"{name} '{culprit}' is not supported"
    if text.startswith("invalid escape sequence"):
        kind = "a backreference" if culprit[1:].isdigit() and culprit != "\\0" else "the escape sequence"
        return f"{kind} '{culprit}' is not supported"
    if text.startswith("bad repetition operator"):
        return f"the repeat '{culprit}' is not supported (possessive repeats are not)"
    return text
