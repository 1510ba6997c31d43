"""What a log line may hold and how often one may be written, so that no client fills the disk through the log."""

import logging
from typing import Final

from gateway.logs.fields import FIELDS, fields_of

#: Characters of one value, of an event, and of one line of a traceback.
LONGEST_TEXT: Final = 400

#: Lines of one traceback.
MOST_TRACEBACK_LINES: Final = 100

#: Lines of one kind that may come at once before the rate counts, as a multiple of the lines in a second.
BURST: Final = 10


def bounded(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return text of at most about that many characters; what is left out is counted."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}... ({len(text) - longest} more characters)"


def masked(name: str) -> str:
    """Return what the log shows of a name that a stranger gave: it may be a password typed into the wrong field."""
    shown = name[: min(2, len(name) // 4)]
    return f"{shown}***" if name else ""


class RateLimit(logging.Filter):
    """Leaves out lines of one kind beyond ``lines_per_s``; the next that is written says in ``left_out`` how many.

    A kind is an event, or for other libraries their logger. Lines of level info about a user who is logged in are all
    written, and so is everything of level debug. Owns how much each kind has used up.
    """

    def __init__(self, lines_per_s: int) -> None:
        super().__init__()
        self._lines_per_s = lines_per_s
        self._burst = lines_per_s * BURST
        self._buckets: dict[tuple[str, int, str], _Bucket] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is written."""
        fields = fields_of(record)
        if record.levelno <= logging.INFO and (record.levelno < logging.INFO or fields.get("user")):
            return True
        kind = record.name, record.levelno, record.getMessage() if hasattr(record, FIELDS) else ""
        bucket = self._buckets.get(kind)
        if bucket is None:
            bucket = self._buckets[kind] = _Bucket(self._burst, record.created)
        left_out = bucket.take(record.created, self._lines_per_s, self._burst)
        if left_out:
            setattr(record, FIELDS, {**fields, "left_out": left_out})
        return left_out is not None


class _Bucket:
    """What one kind of lines has left: ``lines`` may be written now, ``left_out`` were not since the last that was."""

    __slots__ = ("_left_out", "_lines", "_seen_s")

    def __init__(self, lines: float, now_s: float) -> None:
        self._lines = lines
        self._seen_s = now_s
        self._left_out = 0

    def take(self, now_s: float, lines_per_s: int, burst: int) -> int | None:
        """Take a line; return how many were left out before it, or ``None`` when it is left out too."""
        self._lines = min(burst, self._lines + max(0.0, now_s - self._seen_s) * lines_per_s)
        self._seen_s = now_s
        if self._lines < 1:
            self._left_out += 1
            return None
        self._lines -= 1
        left_out, self._left_out = self._left_out, 0
        return left_out
