"""Samples of the depths of queues, as they are written and read."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

QueueKey: TypeAlias = tuple[str, str]
"""A virtual host and the name of a queue in it."""


class Depth(NamedTuple):
    """The number of messages in a queue: ready for consumers, and with consumers.

    ``incarnation`` is the number of a queue in the store, 0 for a transient one: a queue that is deleted and declared
    anew has another one.
    """

    incarnation: int
    ready: int
    unacknowledged: int


class DepthSample(NamedTuple):
    """Depths that were read between two times (wall time in milliseconds); ``None`` for a queue that was deleted.

    A queue that is not in ``depths`` has the depth that it had in the sample before. The first sample of a file has all
    queues.
    """

    begun_ms: int
    ended_ms: int
    depths: Mapping[QueueKey, Depth | None]


class DepthPlace(NamedTuple):
    """A place in the answer for a moment: the start of a file (ms), a sample in it, and the last queue read."""

    file_ms: int
    sample: int
    queue: int = 0


class DepthPage(NamedTuple):
    """Some queues of a virtual host as of a sample between two times. ``next`` is ``None`` for the last page."""

    begun_ms: int
    ended_ms: int
    depths: list[tuple[str, Depth]]
    next: DepthPlace | None
