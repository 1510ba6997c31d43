"""Size limits of one log line, so that no client fills the disk through the log; ``rate_limit`` bounds the
frequency.
"""

from typing import Final

#: Longest value, event, and line of a traceback, in characters.
LONGEST_TEXT: Final = 400

#: Most lines of one traceback.
MOST_TRACEBACK_LINES: Final = 100


def bounded(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return text cut to about that many characters; the number of omitted characters is appended."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}... ({len(text) - longest} more characters)"


def masked(name: str) -> str:
    """Return a name from an unauthenticated client as the log shows it: it may be a password typed into the wrong
    field.
    """
    shown = name[: min(2, len(name) // 4)]
    return f"{shown}***" if name else ""
