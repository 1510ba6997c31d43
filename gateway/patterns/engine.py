"""Patterns compiled by RE2, whose searches take time linear in the text, whatever the pattern (ADR 0016).

RabbitMQ reads patterns as PCRE and matches them anywhere in a name unless they are anchored. RE2 reads the same syntax
except for what needs backtracking: backreferences, atomic groups, possessive repeats, conditions and lookaround.
Lookaround at either end of a pattern is taken apart (``lookaround.py``); everything else of these is refused by name.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, TypeAlias

import re2

from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.patterns import NOTHING, Pattern
from gateway.patterns.literals import literal_pattern
from gateway.patterns.lookaround import Part, parts_of

#: Bytes in a pattern.
LONGEST_PATTERN: Final = 4096

#: Bytes that a compiled pattern may take. One that needs all of them searches a name of 255 bytes in about 5 ms.
_MOST_MEMORY: Final = 128 * 1024

#: A count of repeats so large that RE2 does not take it for one.
_LARGE_REPEAT: Final = re.compile(r"\{[0-9]*,?[0-9]{5,}\}")

Search: TypeAlias = Callable[[bytes], object]
"""Returns what was found, ``None`` for nothing."""

#: What RE2 has no word for, by how its syntax begins.
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
    """Compile a pattern, once for all who use it; the empty one matches nothing.

    :raises PreconditionFailed: when it is not a regular expression, or one that RE2 cannot express or hold.
    """
    _require_sound(pattern)
    return literal_pattern(pattern) or _compiled(pattern or NOTHING, is_caseless=False)


def compile_pattern_caseless(pattern: str) -> Pattern:
    """Compile a pattern that ignores case; raises as ``compile_pattern`` does."""
    _require_sound(pattern)
    return _compiled(pattern, is_caseless=True)


class _Conditions:
    """Matches where each of several searches finds, or does not find, what its part of the pattern says."""

    __slots__ = ("_conditions",)

    def __init__(self, conditions: list[tuple[Search, bool]]) -> None:
        self._conditions = conditions

    def matches(self, text: str) -> bool:
        """Whether every condition holds for the text."""
        data = text.encode("utf-8", "surrogatepass")
        return all((search(data) is not None) is is_wanted for search, is_wanted in self._conditions)


def _compiled(pattern: str, *, is_caseless: bool) -> Pattern:
    parts = parts_of(pattern)
    return _Conditions([(_search(part, pattern, is_caseless), part.is_wanted) for part in parts])


def _require_sound(pattern: str) -> None:
    """Refuse what the engine would not look at, or would take for text."""
    try:
        size = len(pattern.encode())
    except UnicodeEncodeError:
        raise PreconditionFailed(f"invalid regular expression {ascii(pattern)[:80]}: it is not valid Unicode") from None
    if size > LONGEST_PATTERN:
        shown = f"{pattern[:40]}..."
        reason = f"it has {size} bytes, and {LONGEST_PATTERN} are allowed"
        raise PreconditionFailed(f"invalid regular expression '{shown}': {reason}")
    if (repeat := _LARGE_REPEAT.search(pattern)) is not None:
        raise PreconditionFailed(f"invalid regular expression '{pattern}': invalid repetition size: {repeat[0]}")


def _search(part: Part, whole: str, is_caseless: bool) -> Search:
    options = re2.Options()
    options.max_mem = _MOST_MEMORY
    options.never_capture = True
    options.log_errors = False
    options.case_sensitive = not is_caseless
    try:
        search: Search = re2.compile(part.expression, options).search
    except re2.error as error:
        raise PreconditionFailed(f"invalid regular expression '{whole}': {_reason(error)}") from None
    return search


def _reason(error: re2.error) -> str:
    """Say what RE2 found wrong; name what other engines would accept."""
    said = error.args[0]
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
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
