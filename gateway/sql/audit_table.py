"""The audit record as a table, for administrators."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from gateway.sql.api import Api
from gateway.sql.bounds import time_bounds_ms
from gateway.sql.remote_table import RemoteTable

_TEXTS: Final = ("user", "address", "surface", "action", "vhost", "subject")
_STATES: Final = ("before", "after", "details")

AUDIT: Final = pa.schema(
    [
        ("number", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        *((name, pa.string()) for name in (*_TEXTS, *_STATES)),
    ]
)
"""The columns: states and details are JSON."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

#: Entries of one request.
_PAGE: Final = 500


class AuditTable(RemoteTable):
    """The entries of the audit record, the newest first. Only those of the wanted times are requested."""

    def __init__(self, api: Api) -> None:
        super().__init__(AUDIT)
        self._api = api

    def batches(self, columns: list[str], wanted: Any) -> Iterator[pa.RecordBatch]:
        """Yield the entries, page by page."""
        times = time_bounds_ms(wanted, AUDIT)
        period = {"since": str(times.first), "until": str(times.end)}
        page, pages = 1, 1
        seen: set[tuple[Any, int]] = set()  # entries that are added meanwhile move others to later pages
        while page <= pages:
            answer = self._api.get("audit", query={**period, "page": str(page), "page_size": str(_PAGE)})
            entries = {(each.get("cell"), each["number"]): each for each in answer["items"]}
            yield pa.RecordBatch.from_pylist([_row(entries[key]) for key in entries.keys() - seen], schema=AUDIT)
            seen |= entries.keys()
            page, pages = page + 1, answer["page_count"]


def _row(entry: Mapping[str, Any]) -> dict[str, Any]:
    states = {name: None if entry[name] is None else json.dumps(entry[name], ensure_ascii=False) for name in _STATES}
    time = _EPOCH + timedelta(milliseconds=entry["at_ms"])
    return {"number": entry["number"], "timestamp": time, **{name: entry[name] for name in _TEXTS}, **states}
