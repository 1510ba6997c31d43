"""The parts of a node that the metrics are read from, besides the context of the HTTP API."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from gateway.management.context import ApiContext


class PluginTime(NamedTuple):
    """The times of the measured calls of one component of a plugin in a virtual host, in seconds."""

    vhost: str
    plugin: str
    version: int
    method: str
    calls: int
    total_s: float
    longest_s: float


class Commits(Protocol):
    """The commits of a store by duration: ``counts`` has one class more than ``bounds_s``, in seconds."""

    @property
    def bounds_s(self) -> Sequence[float]:
        """The upper bounds of the classes."""
        ...

    @property
    def counts(self) -> Sequence[int]:
        """The number of commits in each class."""
        ...

    @property
    def total_s(self) -> float:
        """The sum of all durations."""
        ...

    @property
    def written_bytes(self) -> int:
        """The size of the message bodies that were written."""
        ...


class Turns(Protocol):
    """The turns of the event loop by duration."""

    slow_turns: int
    longest_s: float

    @property
    def total_s(self) -> float:
        """The sum of their lengths."""
        ...

    @property
    def recent_longest_s(self) -> float:
        """The longest turn of the last half to one minute."""
        ...

    def classes(self) -> tuple[Sequence[float], Sequence[int]]:
        """Return the bounds of the classes in seconds, and the number of turns in each, one more than bounds."""
        ...


@dataclass(slots=True)
class MetricSources:
    """The parts of a node that the metrics are read from.

    ``commits`` is ``None`` for a store without files. ``plugin_times`` returns the times of plugins,
    ``plugin_faults`` their faults by virtual host and plugin, ``staged_bytes`` the size of rows that the pipeline has
    not published yet.
    """

    api: ApiContext
    turns: Turns
    commits: Callable[[], Commits | None] = lambda: None
    plugin_times: Callable[[], Sequence[PluginTime]] = tuple
    plugin_faults: Callable[[], Mapping[tuple[str, str], int]] = dict
    staged_bytes: Callable[[], int] = lambda: 0
