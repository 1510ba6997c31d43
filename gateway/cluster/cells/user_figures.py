"""The figures of users in other cells: how many connections, channels, queues, bindings and consumers each has there.

The leader of each cell sends its figures to all nodes again and again. They are one or two seconds old, so a user can
exceed a limit by what it opens in several cells at the same moment.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gateway.cluster.queue_log import Epoch
from gateway.kernel.clock import Clock
from gateway.kernel.settings.limits import USER_LIMITS

#: The figures of a cell that were not sent again for so long do not count any more, in seconds.
FORGOTTEN_S: Final = 6.0

#: So many users are in one frame at most.
_IN_FRAME: Final = 500

#: The size of the users in one frame at most: half of the smallest ``max_payload`` with which a node starts.
_FRAME_BYTES: Final = 256 * 1024

#: The size of a character in JSON at most, of two surrogates, and that of the figures of a user without the name.
_LONGEST_CHARACTER: Final = 12
_USER_BYTES: Final = 128

Counts = tuple[int, ...]
"""The counts of a user, in the order of ``USER_LIMITS``."""


@dataclass(frozen=True, slots=True)
class FiguresFrame:
    """One of ``parts`` frames with the figures of a cell, from the leader of an epoch, in its n-th ``round``."""

    cell: int
    epoch: Epoch
    round: int
    part: int
    parts: int
    users: Mapping[str, Counts]


class _CellFigures:
    """The figures of one cell, and the frames of its next round so far."""

    __slots__ = ("counts", "frames", "number", "seen_s")

    def __init__(self, number: tuple[Epoch, int]) -> None:
        self.number = number
        self.seen_s = 0.0
        self.counts: Mapping[str, Counts] = {}
        self.frames: dict[int, Mapping[str, Counts]] = {}


class UserFigures:
    """The figures as one node knows them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._cells: dict[int, _CellFigures] = {}

    def elsewhere(self, own: int, limit: str, user: str) -> int:
        """Return how many objects a user has in other cells than its ``own``."""
        at = USER_LIMITS.index(limit)
        oldest_s = self._clock.monotonic_s() - FORGOTTEN_S
        return sum(
            figures.counts[user][at]
            for cell, figures in self._cells.items()
            if cell != own and user in figures.counts and figures.seen_s >= oldest_s
        )

    def take(self, frame: FiguresFrame) -> None:
        """Note a frame; the figures of a round count once all its frames came."""
        number = (frame.epoch, frame.round)
        figures = self._cells.setdefault(frame.cell, _CellFigures(number))
        if number < figures.number:
            return  # of a deposed leader, or of an earlier round
        if number > figures.number:
            figures.number = number
            figures.frames = {}
        figures.frames[frame.part] = frame.users
        if len(figures.frames) == frame.parts:
            figures.counts = {user: counts for users in figures.frames.values() for user, counts in users.items()}
            figures.frames = {}
            figures.seen_s = self._clock.monotonic_s()


def frames_of(cell: int, epoch: Epoch, round: int, users: Mapping[str, Counts]) -> Iterator[bytes]:
    """Yield the frames with the figures of a cell; at least one."""
    parts: list[list[str]] = [[]]
    size = 0
    for name in users:
        most = _LONGEST_CHARACTER * len(name) + _USER_BYTES
        if parts[-1] and (len(parts[-1]) == _IN_FRAME or size + most > _FRAME_BYTES):
            parts.append([])
            size = 0
        parts[-1].append(name)
        size += most
    for number, part in enumerate(parts):
        yield encode_figures(FiguresFrame(cell, epoch, round, number, len(parts), {name: users[name] for name in part}))


def encode_figures(frame: FiguresFrame) -> bytes:
    """Return a frame as JSON."""
    head = {"figures": frame.cell, "epoch": frame.epoch, "round": frame.round, "part": frame.part}
    users = {name: list(counts) for name, counts in frame.users.items()}
    return json.dumps({**head, "parts": frame.parts, "users": users}).encode()


def decode_figures(data: bytes) -> FiguresFrame | None:
    """Return a frame; ``None`` if it cannot be read. Unknown fields are ignored."""
    try:
        fields = json.loads(data)
        users = {str(name): _counts(counts) for name, counts in fields["users"].items()}
        cell, epoch, round, part, parts = (int(fields[name]) for name in ("figures", "epoch", "round", "part", "parts"))
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None
    return FiguresFrame(cell, Epoch(epoch), round, part, parts, users) if 0 <= part < parts else None


def _counts(counts: object) -> Counts:
    """Return the counts in a list. :raises ValueError: if there are too few."""
    if not isinstance(counts, list) or len(counts) < len(USER_LIMITS):
        raise ValueError("too few counts")
    return tuple(int(count) for count in counts)
