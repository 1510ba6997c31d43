"""Progress reports of pipeline consumers, kept in memory only."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from gateway.kernel.streams.stream import Stream
from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.routes import Fields

#: Maximum number of consumers, in total and of one user; the one with the oldest report is dropped.
MAX_CONSUMERS: Final = 1000
MAX_CONSUMERS_PER_USER: Final = 100

#: Maximum number of partitions in a report, and of bytes in a consumer's name.
MAX_PARTITIONS: Final = 256
MAX_CONSUMER_NAME: Final = 255


class Position(NamedTuple):
    """The next offset of a consumer, in the stream of this incarnation; ``None`` if it did not name one."""

    offset: int
    incarnation: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A report of a consumer: its position in each partition of each queue, with its time and user."""

    offsets: Mapping[str, Mapping[str, "Position"]]
    reported_at_ms: int
    user: str


class ProgressReports:
    """The last report of each consumer of each virtual host."""

    def __init__(self) -> None:
        self._reports: OrderedDict[tuple[str, str], Report] = OrderedDict()

    def report(self, vhost_name: str, consumer: str, report: Report) -> None:
        """Store a report in place of the previous one."""
        self._reports.pop((vhost_name, consumer), None)
        self._reports[vhost_name, consumer] = report
        own = [key for key, each in self._reports.items() if each.user == report.user]
        if len(own) > MAX_CONSUMERS_PER_USER:
            del self._reports[own[0]]
        if len(self._reports) > MAX_CONSUMERS:
            self._reports.popitem(last=False)

    def reporter(self, vhost_name: str, consumer: str) -> str | None:
        """Return the user of a consumer's last report, or ``None``."""
        report = self._reports.get((vhost_name, consumer))
        return None if report is None else report.user

    def forget(self, vhost_name: str, consumer: str) -> bool:
        """Delete a consumer; return whether it existed."""
        return self._reports.pop((vhost_name, consumer), None) is not None

    def of(self, vhost_name: str) -> list[tuple[str, Report]]:
        """Return the consumers of a virtual host and their reports."""
        return sorted((name, report) for (vhost, name), report in self._reports.items() if vhost == vhost_name)


def lag_view(vhost: VirtualHost, queue: str, partition: str, stream_name: str, position: Position) -> Fields:
    """Return a consumer's offset in one partition; ``lag`` is ``null`` if the stream it read does not exist."""
    stream = vhost.queue_by_name.get(stream_name)
    is_there = isinstance(stream, Stream) and position.incarnation in (None, stream.incarnation)
    end = stream.durable_end if isinstance(stream, Stream) and is_there else None
    return {
        "queue": queue,
        "partition": int(partition),
        "offset": position.offset,
        "lag": None if end is None else max(0, end - position.offset),
    }
