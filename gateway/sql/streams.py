"""Streams as tables: their messages are read in the columnar form that Spark's source reads, too."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from gateway.columnar.encoding.schema import MESSAGES
from gateway.sql.api import Api, SqlFailed
from gateway.sql.bounds import Bounds, offset_bounds, time_bounds_ms
from gateway.sql.remote_table import RemoteTable


class StreamTable(RemoteTable):
    """A stream or a super stream, with the messages that it had when it was listed.

    ``partitions`` are the broker's entries of its streams. Only the messages between the bounds that a filter implies
    for ``offset`` and ``timestamp`` are requested.
    """

    def __init__(self, api: Api, vhost: str, partitions: list[Mapping[str, Any]]) -> None:
        super().__init__(MESSAGES)
        self._api = api
        self._path = ("pipeline", vhost)
        self._partitions = partitions

    def batches(self, columns: list[str], wanted: Any) -> Iterator[pa.RecordBatch]:
        """Yield the messages of the partitions, one after the other."""
        times = time_bounds_ms(wanted, MESSAGES)
        for part in self._partitions:
            bounds = offset_bounds(wanted, MESSAGES, Bounds(part["first"], part["next"]))
            yield from self._messages(part, self._within(part, bounds, times))

    def _within(self, part: Mapping[str, Any], bounds: Bounds, times: Bounds) -> Bounds:
        """Return the offsets within bounds whose times may be within others."""
        first, end = bounds
        everything = time_bounds_ms(None, MESSAGES)
        if first < end and times.first > everything.first:
            first = max(first, self._offset_at(part, times.first))
        if first < end and times.end < everything.end:
            end = min(end, self._offset_at(part, times.end))
        return Bounds(first, end)

    def _offset_at(self, part: Mapping[str, Any], ms: int) -> int:
        """Return the offset of the first message at or after a time."""
        found = self._api.get(*self._path, "offset", query={"queue": part["queue"], "timestamp": str(ms)})
        return int(found["offset"])

    def _messages(self, part: Mapping[str, Any], bounds: Bounds) -> Iterator[pa.RecordBatch]:
        position, end = bounds
        while position < end:
            query = {"queue": part["queue"], "incarnation": part["incarnation"], "from": str(position), "to": str(end)}
            begun = position
            with pa.ipc.open_stream(self._api.raw(*self._path, "read", query=query)) as stream:
                for batch in stream:
                    offsets = batch.column("offset")
                    first = offsets[0].as_py() if len(offsets) else position
                    kept = batch.slice(max(0, position - first), max(0, end - max(first, position)))
                    position += len(kept)
                    yield kept
            if position == begun:
                raise SqlFailed(f"the broker returned no messages of stream '{part['queue']}' from offset {begun} on")
