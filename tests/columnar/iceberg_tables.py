"""Iceberg tables on a local disk: requests as the broker sends them, and readers that know nothing of the gateway."""

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyiceberg.table import StaticTable

from gateway.archive.targets import iceberg_address
from gateway.columnar.tables.iceberg_address import IcebergAddress
from gateway.config import Settings
from gateway.config.archive import ArchiveSettings


def address_in(directory: Path, **settings: Any) -> IcebergAddress:
    """Return the address of tables for a data directory."""
    return iceberg_address(Settings(data=directory, archive=ArchiveSettings(format="iceberg", **settings)))


def request(address: IcebergAddress, first: int, end: int, **fields: Any) -> dict[str, Any]:
    """Return the request that files a segment of the queue ``q``."""
    place = {"vhost": "/", "queue": "q", "source": "queue", "name": "q", "since_ms": 1, "path": None}
    head = {"do": "rows", "iceberg": address.as_head(), "table": "archive", "kind": "messages"}
    return {**head, **place, "from": first, "to": end, **fields}


def table_in(directory: Path, name: str = "archive") -> StaticTable:
    """Return a table as a reader finds it in its directory."""
    return StaticTable.from_metadata(str(directory / "iceberg" / name))


def rows_in(directory: Path, name: str = "archive") -> pa.Table:
    """Return the rows as pyiceberg reads them."""
    return table_in(directory, name).scan().to_arrow()


@cache
def duck() -> duckdb.DuckDBPyConnection:
    """Return DuckDB with its extension for Iceberg, which is installed as a Python package."""
    connection = duckdb.connect()
    for name in ("avro", "iceberg"):
        [extension] = Path(str(files(f"duckdb_extension_{name}"))).rglob(f"{name}.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
    return connection


def query(directory: Path, columns: str, name: str = "archive", rest: str = "") -> list[tuple[Any, ...]]:
    """Return what DuckDB selects from a table."""
    where = str(directory / "iceberg" / name).replace("'", "''")
    return duck().execute(f"SELECT {columns} FROM iceberg_scan('{where}') {rest}").fetchall()
