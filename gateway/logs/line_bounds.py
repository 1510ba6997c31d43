"""What one log line may hold, so that no client fills the disk through the log. How often: ``rate_limit``."""

from typing import Final

#: Characters of one value, of an event, and of one line of a traceback.
LONGEST_TEXT: Final = 400

#: Lines of one traceback.
MOST_TRACEBACK_LINES: Final = 100


def bounded(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return text of at most about that many characters; what is left out is counted."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}... ({len(text) - longest} more characters)"


def masked(name: str) -> str:
    """Return what the log shows of a name that a stranger gave: it may be a password typed into the wrong field."""
    shown = name[: min(2, len(name) // 4)]
    return f"{shown}***" if name else ""
