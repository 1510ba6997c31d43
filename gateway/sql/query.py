"""One query: run by DuckDB in this process, over tables at the broker.

SQL may come from elsewhere, so it can read these tables alone: no files, no network, no extensions, no environment.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any, Final

import duckdb
import pyarrow as pa

from gateway.sql.api import Api, SqlFailed
from gateway.sql.catalogue import NamedTable, quoted, tables
from gateway.sql.depths import depth_at
from gateway.sql.retained import SCHEMA as RETAINED
from gateway.sql.retained import state_at

_STATEMENTS: Final = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)

#: A query for the list of tables, which is answered from the catalogue.
_SHOW_TABLES: Final = re.compile(r"\s*show\s+(all\s+)?tables\s*;?\s*", re.IGNORECASE)

#: Words of queries that may list tables themselves.
_LISTING: Final = re.compile(r"information_schema|duckdb_|\bshow\b|\bpg_", re.IGNORECASE)

_LISTED: Final = pa.schema([("table", pa.string()), ("rows", pa.string())])

#: Rows of the result that are converted at a time.
_ROWS: Final = 1024

_MOST_THREADS: Final = 4

_CONFIGURATION: Final[dict[str, Any]] = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
}


class SqlQuery:
    """A query over the tables of a virtual host.

    ``memory`` is the limit of DuckDB, such as ``1GB``; what does not fit is in a temporary directory. ``tags`` returns
    those of the user.
    """

    def __init__(self, api: Api, vhost: str, sql: str, memory: str, tags: Callable[[], Iterable[str]]) -> None:
        self._api = api
        self._vhost = vhost
        self._sql = sql
        self._memory = memory
        self._tags = tags

    @contextmanager
    def run(self) -> Iterator[tuple[list[str], Iterator[tuple[Any, ...]]]]:
        """Run the query; return the names of the columns, and the rows, which are read on demand.

        :raises SqlFailed: if the SQL is wrong or refused; also while the rows are read.
        """
        with TemporaryDirectory(prefix="gatewayctl-sql-") as spill, self._connection(spill) as connection:
            found: list[NamedTable] = []
            try:
                self._check(connection)
                found = tables(self._api, self._vhost, self._tags, self._is_wanted)
                _add(connection, found)
                connection.execute("SET enable_external_access = false; SET lock_configuration = true")
                with _faults_of(found):
                    result = connection.execute(self._statement(connection, found))
                yield [column[0] for column in result.description], self._rows(result, found)
            finally:
                connection.interrupt()

    def _connection(self, spill: str) -> duckdb.DuckDBPyConnection:
        threads = min(_MOST_THREADS, os.cpu_count() or 1)
        settings = {"memory_limit": self._memory, "temp_directory": spill, "threads": threads, **_CONFIGURATION}
        try:
            connection = duckdb.connect(":memory:", config=settings)
            connection.execute("SET TimeZone = 'UTC'")
        except duckdb.Error as error:
            raise SqlFailed(one_line(error)) from None
        return connection

    def _check(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Check that there is one statement, and that it only reads. :raises SqlFailed: if not."""
        try:
            statements = connection.extract_statements(self._sql)
        except duckdb.Error as error:
            raise SqlFailed(one_line(error)) from None
        if len(statements) != 1 or statements[0].type not in _STATEMENTS:
            raise SqlFailed("one query is expected: SELECT, WITH, FROM, VALUES, SHOW, DESCRIBE, SUMMARIZE or EXPLAIN")

    def _is_wanted(self, name: str) -> bool:
        """Return whether the query may use a table or a schema of this name."""
        return name in self._sql.casefold() or _LISTING.search(self._sql) is not None

    def _statement(self, connection: duckdb.DuckDBPyConnection, found: list[NamedTable]) -> str:
        if not _SHOW_TABLES.fullmatch(self._sql):
            return self._sql
        listed = [{"table": each.sql_name, "rows": each.about} for each in found if not each.is_function]
        connection.register("gateway tables", pa.Table.from_pylist(listed, schema=_LISTED))
        return 'SELECT * FROM "gateway tables"'

    def _rows(self, result: duckdb.DuckDBPyConnection, found: list[NamedTable]) -> Iterator[tuple[Any, ...]]:
        with _faults_of(found):
            while rows := result.fetchmany(_ROWS):
                yield from rows


def one_line(error: Exception) -> str:
    """Return an error of DuckDB on one line, without the excerpt of the query."""
    reason = " ".join(str(error).partition("\n\nLINE ")[0].split())
    return reason.partition(" Possible solutions:")[0]


@contextmanager
def _faults_of(found: list[NamedTable]) -> Iterator[None]:
    """Raise the exception of a table instead of DuckDB's text about it. :raises SqlFailed: for errors of DuckDB."""
    try:
        yield
    except (duckdb.Error, RuntimeError) as error:
        for each in found:
            if each.table.fault is not None:
                raise each.table.fault from None
        if "interrupt" in str(error).casefold():
            raise KeyboardInterrupt from None
        raise SqlFailed(one_line(error)) from None


def _add(connection: duckdb.DuckDBPyConnection, found: list[NamedTable]) -> None:
    """Add the tables as views, in their schemas, and the functions of a moment."""
    for schema in sorted({each.schema for each in found if each.schema}):
        connection.execute(f"CREATE SCHEMA {schema}")
    for number, each in enumerate(found):
        if each.is_function:
            connection.register(f"gateway {number}", each.table)
            connection.execute(depth_at(f'"gateway {number}"'))
            continue
        if not each.schema:
            connection.register(each.name, each.table)
            continue
        connection.register(f"gateway {number}", each.table)
        connection.execute(f'CREATE VIEW {each.schema}.{quoted(each.name)} AS SELECT * FROM "gateway {number}"')
    if any(each.has_retained for each in found):
        connection.execute(f"CREATE SCHEMA {RETAINED}")
    for each in found:
        if each.has_retained:
            connection.execute(state_at(f"{RETAINED}.{quoted(each.name)}", each.sql_name))
