"""The tables of one virtual host that the user may read, by their names in SQL."""

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from gateway.columnar.encoding.schema import MESSAGES, TRACE
from gateway.columnar.tables.iceberg_address import ARCHIVE_TABLE, DEAD_LETTER_TABLE
from gateway.sql.api import Api
from gateway.sql.archives import ArchiveTable, SharedTable
from gateway.sql.audit_table import AuditTable
from gateway.sql.depths import FUNCTION as DEPTH
from gateway.sql.depths import DepthTable
from gateway.sql.remote_table import RemoteTable
from gateway.sql.retained import SCHEMA as RETAINED
from gateway.sql.streams import StreamTable

STREAMS: Final = "streams"
ARCHIVE: Final = "archive"
TYPED: Final = "typed"
"""Schemas."""

_TRACE: Final = "trace"
_EXCHANGE: Final = "exchange"
_ADMINISTRATOR: Final = "administrator"


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table; ``schema`` is empty for those without one. ``about`` says what its rows are.

    ``has_retained``: from its messages follow the retained messages of a moment. ``is_function``: it is a function of a
    moment itself.
    """

    schema: str
    name: str
    about: str
    table: RemoteTable
    has_retained: bool = False
    is_function: bool = False

    @property
    def sql_name(self) -> str:
        """The name as a query has it."""
        return f"{self.schema}.{quoted(self.name)}" if self.schema else self.name


def quoted(name: str) -> str:
    """Return an identifier of SQL."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def tables(
    api: Api, vhost: str, tags: Callable[[], Iterable[str]], is_wanted: Callable[[str], bool]
) -> list[NamedTable]:
    """Return the tables whose schema or name is wanted, in the order of their names.

    The broker lists what the user may read. ``tags`` are the user's.
    """
    found: list[NamedTable] = []
    if is_wanted(STREAMS):
        found += _named(_streams(api, vhost))
    if any(map(is_wanted, (ARCHIVE, RETAINED, "traces", TYPED, DEAD_LETTER_TABLE))):
        listed = api.get("archive-files", vhost)["archives"]
        archives = [each for each in listed if each["source"] != _TRACE]
        found += _named(_archives(api, vhost, archives))
        found += _named(_typed(api, vhost, archives, is_wanted))
        if any(each["source"] == _TRACE for each in listed):
            trace = ArchiveTable(api, vhost, _TRACE, "", TRACE)
            found.append(NamedTable("", "traces", "events of messages", trace))
    if is_wanted("audit") and _ADMINISTRATOR in tags():
        found.append(NamedTable("", "audit", "changes by operators", AuditTable(api)))
    if is_wanted(DEPTH):
        found.append(NamedTable("", DEPTH, "depths of queues", DepthTable(api, vhost), is_function=True))
    return found


def _streams(api: Api, vhost: str) -> Iterator[NamedTable]:
    for each in api.get("pipeline", vhost, "streams")["queues"]:
        parts = list(each["partitions"].values())
        is_super = len(parts) != 1 or parts[0]["queue"] != each["queue"]
        about = "super stream" if is_super else "stream"
        yield NamedTable(STREAMS, each["queue"], about, StreamTable(api, vhost, parts))


def _archives(api: Api, vhost: str, listed: list[dict[str, Any]]) -> Iterator[NamedTable]:
    """Yield each archive; if a queue and an exchange have the same name, it is followed by which of them."""
    names = [each["name"] for each in listed]
    for each in listed:
        source, name = each["source"], each["name"]
        shown = name if names.count(name) == 1 else f"{name} ({source})"
        table = ArchiveTable(api, vhost, source, name, MESSAGES)
        yield NamedTable(ARCHIVE, shown, f"archive of {source}", table, has_retained=source == _EXCHANGE)


def _typed(
    api: Api, vhost: str, listed: list[dict[str, Any]], is_wanted: Callable[[str], bool]
) -> Iterator[NamedTable]:
    """Yield the typed tables with messages of these archives, and the messages that typed tables refuse, if wanted."""
    sources: dict[str, list[tuple[str, str]]] = {}
    for each in listed:
        for name in each.get("tables", ()):
            sources.setdefault(name, []).append((each["source"], each["name"]))
    sources.pop(ARCHIVE_TABLE, None)
    for name, archives in sources.items():
        schema_name = "" if name == DEAD_LETTER_TABLE else TYPED
        if not is_wanted(schema_name or name):
            continue
        source, archive = archives[0]
        query = {"source": source, "name": archive, "table": name}
        schema = decoded_schema(api.get("archive-files", vhost, "columns", query=query)["schema"])
        table = SharedTable(schema, [ArchiveTable(api, vhost, *each, schema, name) for each in archives])
        about = "typed messages" if schema_name else "messages that typed tables refuse"
        yield NamedTable(schema_name, name, about, table)


def decoded_schema(text: str) -> pa.Schema:
    """Return columns from Base64 of Arrow's serialized form."""
    return pa.ipc.read_schema(pa.py_buffer(b64decode(text)))


def _named(found: Iterable[NamedTable]) -> Iterator[NamedTable]:
    """Yield tables by name. SQL ignores case, so a name that differs by case only from an earlier one gets a number."""
    taken: set[str] = set()
    for table in sorted(found, key=lambda each: each.name):
        unique, number = table.name, 1
        while unique.casefold() in taken:
            number += 1
            unique = f"{table.name} ({number})"
        taken.add(unique.casefold())
        yield replace(table, name=unique)
