"""The recent history of one subject: its samples, and rates and averages over any span of time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from gateway.management.http.errors import HttpError
from gateway.management.http.routes import Fields

Counts: TypeAlias = dict[str, int]

#: Families of counts for which a query can request samples: ``msg_rates_age=60&msg_rates_incr=5``.
FAMILIES: Final = ("lengths", "msg_rates", "data_rates", "node_stats")

#: Time for which samples are kept, in seconds.
RETENTION_S: Final = 600

#: Maximum number of samples in a response.
_MAX_SAMPLES: Final = 500

#: Counts that can decrease; all others are monotonic.
GAUGES: Final = frozenset(
    {"messages", "messages_ready", "messages_unacknowledged"}
    | {"mem_used", "fd_used", "sockets_used", "proc_used", "disk_free"}
)


@dataclass(frozen=True, slots=True)
class Span:
    """The requested samples: the last ``age_s`` seconds, one every ``increment_s`` seconds."""

    age_s: int
    increment_s: int


def spans_of(query: Mapping[str, str]) -> dict[str, Span]:
    """Return the requested span of each family. :raises HttpError: for an invalid one."""
    spans = {}
    for family in FAMILIES:
        age, increment = query.get(f"{family}_age", ""), query.get(f"{family}_incr", "")
        if not (_is_number(age) and _is_number(increment)):
            continue
        age_s, increment_s = int(age), int(increment)
        if age_s <= 0 or increment_s <= 0 or age_s // increment_s > _MAX_SAMPLES:
            reason = f"Invalid range parameters: age {age_s}, incr {increment_s}"
            raise HttpError(400, "invalid_range_parameters", reason)
        spans[family] = Span(age_s, increment_s)
    return spans


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) < 16


#: The names of counts, one object for all subjects of a kind: there are few kinds, and many subjects.
_SHARED_NAMES: Final[dict[tuple[str, ...], tuple[str, ...]]] = {}


class History:
    """The samples of one subject, oldest first.

    Samples without a change are not stored, so idle subjects use no memory. ``sampled_at_s`` is the time of the last
    sample that was taken. If a monotonic count decreases, another subject has the same name now, and all earlier
    samples are dropped.
    """

    __slots__ = ("_is_cut", "_names", "_rates", "_rows", "sampled_at_s")

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._rows: list[tuple[float, tuple[int, ...]]] = []  # a deque takes 0.6 KiB, and most subjects have one row
        self._rates: tuple[float, ...] = ()  # of the last sample; empty if nothing changed
        self._is_cut = False  # older samples were dropped for lack of room
        self.sampled_at_s = 0.0

    def __len__(self) -> int:
        return len(self._rows)

    def record(self, now_s: float, counts: Counts, keep: int, keep_s: float, since_s: float = 0.0) -> None:
        """Add a sample; keep at most ``keep`` samples, and at most one older than ``keep_s``.

        Up to ``since_s`` nothing had changed since the last sample, although none was taken.
        """
        names, values = tuple(counts), tuple(counts.values())
        rows = self._rows
        if names != self._names:
            self._names = _SHARED_NAMES.setdefault(names, names)
            rows.clear()
        elif rows and self._has_decreased(values):
            rows.clear()
        before = rows[-1][1] if rows else None
        if before is None:
            self._rates, self._is_cut = (), False
        elif before == values:
            self._rates = ()
        else:
            elapsed_s = max(now_s - max(self.sampled_at_s, since_s), 0.001)
            self._rates = tuple((n - m) / elapsed_s for n, m in zip(values, before, strict=True))
        if before != values:
            rows.append((now_s, values))
        self.sampled_at_s = now_s
        self.trim(now_s, keep, keep_s)

    def trim(self, now_s: float, keep: int, keep_s: float) -> None:
        """Remove what is too much and too old."""
        rows = self._rows
        while len(rows) > keep:
            del rows[0]
            self._is_cut = True
        while len(rows) > 1 and rows[1][0] <= now_s - keep_s:
            del rows[0]

    @property
    def is_moving(self) -> bool:
        """Whether a count changed between the last two samples: without a further sample its rate would not end."""
        return any(self._rates)

    def _has_decreased(self, values: tuple[int, ...]) -> bool:
        last = self._rows[-1][1]
        return any(n < m for name, n, m in zip(self._names, values, last, strict=True) if n != m and name not in GAUGES)

    @property
    def changed_at_s(self) -> float:
        """Time of the last sample that differs from the one before."""
        return self._rows[-1][0] if self._rows else 0.0

    def latest(self) -> Counts:
        """Return the counts of the last sample."""
        return dict(zip(self._names, self._rows[-1][1], strict=True)) if self._rows else {}

    def rate(self, name: str) -> float:
        """Return the rate of a count per second between the last two samples."""
        try:
            return self._rates[self._names.index(name)]
        except (ValueError, IndexError):
            return 0.0

    def samples(self, name: str, times_s: list[float]) -> list[int]:
        """Return the values of a count at these times, in descending order; 0 before the first sample.

        If samples were dropped for lack of room, the oldest one stands for them: 0 would look like a steep rise.
        """
        if name not in self._names:
            return [0] * len(times_s)
        column = self._names.index(name)
        before = self._rows[0][1][column] if self._is_cut else 0
        return list(_steps(iter(reversed(self._rows)), column, times_s, before))


def _steps(
    rows: Iterator[tuple[float, tuple[int, ...]]], column: int, times_s: list[float], before: int
) -> Iterator[int]:
    row = next(rows, None)
    for time_s in times_s:
        while row is not None and row[0] > time_s:
            row = next(rows, None)
        yield row[1][column] if row is not None else before


class Trend:
    """The rate of a count and, if the query requests them, samples with their averages.

    ``wall_s`` is the wall time at ``now_s`` of the history. ``long`` is a history that goes back further.
    """

    def __init__(
        self,
        history: History | None,
        spans: Mapping[str, Span] | None = None,
        now_s: float = 0.0,
        wall_s: float = 0.0,
        long: History | None = None,
    ) -> None:
        self._history = history or History()
        self._long = long or self._history
        self._spans = spans or {}
        self._now_s = now_s
        self._wall_s = wall_s

    def rate(self, name: str) -> float:
        """Return the rate of a count per second."""
        return round(self._history.rate(name), 3)

    def details(self, name: str, family: str) -> Fields:
        """Return ``{"rate": 2.0}``, with ``samples``, ``avg`` and ``avg_rate`` for a span."""
        span = self._spans.get(family)
        if span is None:
            return {"rate": round(self._history.rate(name), 3) * 1.0}
        timestamps = self._timestamps(span)
        history = self._long if span.age_s > RETENTION_S else self._history
        samples = history.samples(name, [self._now_s - (self._wall_s - stamp) for stamp in timestamps])
        shown = [
            {"sample": sample, "timestamp": stamp * 1000} for sample, stamp in zip(samples, timestamps, strict=True)
        ]
        if len(samples) == 1:
            return {"rate": 0.0, "samples": shown}
        return {
            "rate": (samples[0] - samples[1]) / span.increment_s,
            "samples": shown,
            "avg_rate": (samples[0] - samples[-1]) / (timestamps[0] - timestamps[-1]),
            "avg": sum(samples) / len(samples),
        }

    def _timestamps(self, span: Span) -> list[int]:
        """Return the wall times of samples in seconds, multiples of the increment, latest first."""
        latest = int(self._wall_s) // span.increment_s * span.increment_s
        return [latest - number * span.increment_s for number in range(span.age_s // span.increment_s + 1)]
