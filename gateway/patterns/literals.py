r"""Patterns that a string method can match, such as ``.*`` and ``^orders\.``: most of those in use."""

import re
from typing import Final

from gateway.kernel.patterns import Pattern

#: Optional start anchor, literal characters, and optional end anchor; a leading ``.*`` makes the start anchor void.
_SIMPLE: Final = re.compile(r"(\^?)((?:[A-Za-z0-9_ /:=@%-]|\\[.-])*)(\.\*|\$)?")


class Anything:
    """Matches every text."""

    __slots__ = ()

    def matches(self, text: str) -> bool:
        """Return true."""
        return True


class Beginning:
    """Matches texts that begin with a prefix."""

    __slots__ = ("_prefix",)

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def matches(self, text: str) -> bool:
        """Return whether the text begins with the prefix."""
        return text.startswith(self._prefix)


class Containing:
    """Matches texts that contain another."""

    __slots__ = ("_part",)

    def __init__(self, part: str) -> None:
        self._part = part

    def matches(self, text: str) -> bool:
        """Return whether the text contains the part."""
        return self._part in text


class Equal:
    """Matches one text."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def matches(self, text: str) -> bool:
        """Return whether the texts are equal."""
        return text == self._text


class Ending:
    """Matches texts that end with a suffix."""

    __slots__ = ("_suffix",)

    def __init__(self, suffix: str) -> None:
        self._suffix = suffix

    def matches(self, text: str) -> bool:
        """Return whether the text ends with the suffix."""
        return text.endswith(self._suffix)


def literal_pattern(pattern: str) -> Pattern | None:
    """Return a matcher without an engine that is equivalent to the pattern; ``None`` if it needs an engine."""
    found = _SIMPLE.fullmatch(pattern)
    if found is None or not pattern:
        return None
    start, escaped, end = found.groups()
    literal = escaped.replace("\\", "")
    if end == "$":
        return Equal(literal) if start else Ending(literal)
    if not literal:
        return Anything()
    return Beginning(literal) if start else Containing(literal)
