"""One file of depths: a SQLite database with the depth of all queues at its first sample, and the changes after it.

So a file needs no other one, and old files are removed as a whole. A sample is one transaction: after a crash it is
there as a whole or not at all.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

from gateway.management.depths.depth_sample import Depth, DepthPage, DepthPlace, DepthSample

#: Queues of one page.
PAGE: Final = 500

_TABLES: Final = (
    "CREATE TABLE about (start_ms INTEGER, longest_ms INTEGER, closed_ms INTEGER)",
    "CREATE TABLE samples (number INTEGER PRIMARY KEY, begun_ms INTEGER, ended_ms INTEGER)",
    "CREATE INDEX ends ON samples (ended_ms)",
    "CREATE TABLE queues (number INTEGER PRIMARY KEY, vhost TEXT, name TEXT, UNIQUE (vhost, name))",
    "CREATE INDEX vhosts ON queues (vhost)",
    "CREATE TABLE depths (queue INTEGER, sample INTEGER, incarnation INTEGER, ready INTEGER, unacknowledged INTEGER,"
    " PRIMARY KEY (queue, sample)) WITHOUT ROWID",
)

_NEW_QUEUES: Final = "INSERT OR IGNORE INTO queues (vhost, name) VALUES {rows}"

_NEW_DEPTHS: Final = """
INSERT INTO depths SELECT queues.number, ?, given.column3, given.column4, given.column5
FROM (VALUES {rows}) AS given
CROSS JOIN queues ON queues.vhost = given.column1 AND queues.name = given.column2
"""

#: Rows that are added by one statement. SQLite runs without the interpreter lock, so larger statements hold up the
#: event loop less; it takes at most 999 values.
_ROWS: Final = 150

_GONE: Final = (None, None, None)

_SAMPLE_AT: Final = "SELECT number, ended_ms FROM samples WHERE ended_ms <= ? ORDER BY ended_ms DESC LIMIT 1"

_DEPTHS_AT: Final = """
SELECT queues.number, queues.name, depths.incarnation, depths.ready, depths.unacknowledged
FROM queues JOIN depths ON depths.queue = queues.number AND depths.sample = (
    SELECT max(latest.sample) FROM depths AS latest WHERE latest.queue = queues.number AND latest.sample <= :sample
)
WHERE queues.vhost = :vhost AND queues.number > :queue
ORDER BY queues.number LIMIT :most
"""


class DepthFile:
    """A file that begins at ``start_ms``. All calls are on one thread. Owns its connection."""

    def __init__(self, path: Path, start_ms: int) -> None:
        """Open the file, or create it. :raises sqlite3.Error: if it cannot be opened."""
        self.path = path
        self.start_ms = start_ms
        if not path.exists():
            path.touch(mode=0o600)
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._samples = 0

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return self.path.stat().st_size

    def create(self, longest_ms: int) -> None:
        """Create the tables. An answer may be ``longest_ms`` older than the moment that it is for."""
        for table in _TABLES:
            self._connection.execute(table)
        self._connection.execute("INSERT INTO about VALUES (?, ?, NULL)", (self.start_ms, longest_ms))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the statements of the block, or undo them if it fails."""
        self._connection.execute("BEGIN")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.rollback()
            raise

    def add(self, sample: DepthSample) -> None:
        """Add a sample. The deletion of a queue that the file does not have is left out."""
        self._samples += 1
        changes = iter(sample.depths.items())
        while some := list(islice(changes, _ROWS)):
            if present := [key for key, depth in some if depth is not None]:
                self._insert(_NEW_QUEUES, present)
            self._insert(_NEW_DEPTHS, [(*key, *(depth or _GONE)) for key, depth in some], self._samples)
        times = (self._samples, sample.begun_ms, sample.ended_ms)
        self._connection.execute("INSERT INTO samples VALUES (?, ?, ?)", times)

    def _insert(self, statement: str, rows: Sequence[tuple[Any, ...]], *before: int) -> None:
        """Add rows by one statement, with values that stand before them."""
        row = f"({', '.join('?' * len(rows[0]))})"
        self._connection.execute(statement.format(rows=", ".join([row] * len(rows))), (*before, *chain(*rows)))

    def end(self, at_ms: int) -> None:
        """Record that the broker stopped."""
        self._connection.execute("UPDATE about SET closed_ms = ?", (at_ms,))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    # Reading

    def sample_at(self, moment_ms: int) -> tuple[int, DepthPlace, bool] | None:
        """Return when the last sample before a moment ended, its place, and whether it answers for the moment.

        It does if it is recent enough, and the broker had not stopped. ``None`` without a sample, as after a crash in
        the first one.
        """
        if not self._connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'samples'").fetchone()[0]:
            return None
        with closing(self._connection.execute(_SAMPLE_AT, (moment_ms,))) as found:
            sample = found.fetchone()
        if sample is None:
            return None
        number, ended_ms = sample
        longest_ms, closed_ms = self._connection.execute("SELECT longest_ms, closed_ms FROM about").fetchone()
        answers = moment_ms - ended_ms <= longest_ms and (closed_ms is None or moment_ms < closed_ms)
        return ended_ms, DepthPlace(self.start_ms, number), answers

    def page(self, place: DepthPlace, vhost: str) -> DepthPage:
        """Return the next queues of a virtual host after a place. :raises LookupError: if its sample does not exist."""
        asked = {"vhost": vhost, "most": PAGE, **place._asdict()}
        rows = self._connection.execute(_DEPTHS_AT, asked).fetchall()
        depths = [(name, Depth(*depth)) for _, name, *depth in rows if depth[1] is not None]
        after = place._replace(queue=rows[-1][0]) if len(rows) == PAGE else None
        return DepthPage(*self._times(place), depths, after)

    def _times(self, place: DepthPlace) -> tuple[int, int]:
        times = self._connection.execute("SELECT begun_ms, ended_ms FROM samples WHERE number = ?", (place.sample,))
        for begun_ms, ended_ms in times:
            return begun_ms, ended_ms
        raise LookupError(place)
