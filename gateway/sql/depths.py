"""The depths of queues as of a moment, from the samples that the broker records.

The function passes its moment on as the only value of a column, so that the broker, which finds it by an index, sends
the queues of that moment and nothing else.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from gateway.sql.api import Api, SqlFailed
from gateway.sql.bounds import time_bounds_ms
from gateway.sql.remote_table import RemoteTable

FUNCTION: Final = "depth"

DEPTHS: Final = pa.schema(
    [
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("sampled_from", pa.timestamp("us", tz="UTC")),
        ("sampled_to", pa.timestamp("us", tz="UTC")),
        ("queue", pa.string()),
        ("incarnation", pa.int64()),
        ("messages", pa.int64()),
        ("ready", pa.int64()),
        ("unacknowledged", pa.int64()),
    ]
)
"""The columns; ``timestamp`` is the moment, in milliseconds, and no column of the function."""

_FUNCTION: Final = """
CREATE MACRO {macro}(moment) AS TABLE
SELECT each.* EXCLUDE (timestamp)
FROM {table} AS each
WHERE each.timestamp = date_trunc('milliseconds', CAST(moment AS TIMESTAMPTZ))
"""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def depth_at(table: str) -> str:
    """Return the statement that creates the function of a moment over a ``DepthTable`` of this name in SQL."""
    return _FUNCTION.format(macro=FUNCTION, table=table)


class DepthTable(RemoteTable):
    """The depths of the queues of a virtual host, of a filter's moment; without one it cannot be read."""

    def __init__(self, api: Api, vhost: str) -> None:
        super().__init__(DEPTHS)
        self._api = api
        self._vhost = vhost

    def batches(self, columns: list[str], wanted: Any) -> Iterator[pa.RecordBatch]:
        """Yield the queues, page by page. :raises SqlFailed: if nothing is recorded, or the moment is not constant."""
        times = time_bounds_ms(wanted, DEPTHS)
        if times.end != times.first + 1:
            raise SqlFailed("depth() takes one moment, a constant, such as depth('2026-11-27 03:00:00')")
        asked = {"at": str(times.first)}
        while asked:
            answer = self._api.get("queue-depths", self._vhost, query=asked)
            if answer["sampled_to_ms"] is None and not answer["recording"]:
                raise SqlFailed("the depths of queues are not recorded: set depths.interval_s")
            rows = [_row(times.first, answer, each) for each in answer["queues"]]
            yield pa.RecordBatch.from_pylist(rows, schema=DEPTHS)
            asked = {"after": answer["next"]} if answer["next"] is not None else {}


def _row(moment_ms: int, answer: Mapping[str, Any], queue: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "timestamp": _time(moment_ms),
        "sampled_from": _time(answer["sampled_from_ms"]),
        "sampled_to": _time(answer["sampled_to_ms"]),
        "queue": queue["name"],
        "incarnation": queue["incarnation"] or None,
        "messages": queue["ready"] + queue["unacknowledged"],
        "ready": queue["ready"],
        "unacknowledged": queue["unacknowledged"],
    }


def _time(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)
