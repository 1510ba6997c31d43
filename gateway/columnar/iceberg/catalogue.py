"""The catalogue with the tables of the archive: opens, creates and evolves them."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform, IdentityTransform

from gateway.columnar.encoding.schema import MESSAGES, TRACE
from gateway.columnar.encoding.typed_messages import DEAD_LETTERS, SOURCE
from gateway.columnar.iceberg.evolution import evolve
from gateway.columnar.iceberg.version_hint import hinted_metadata
from gateway.columnar.tables.files import make_directory
from gateway.columnar.tables.iceberg_address import (
    ARCHIVE_TABLE,
    DEAD_LETTER_TABLE,
    TRACE_TABLE,
    IcebergAddress,
    local_path,
)
from gateway.kernel.errors import StorageError

DAY: Final = "timestamp_day"
"""The partition field of the day."""

SCHEMAS: Final[Mapping[str, pa.Schema]] = MappingProxyType(
    {ARCHIVE_TABLE: pa.schema([*MESSAGES, *SOURCE]), TRACE_TABLE: TRACE, DEAD_LETTER_TABLE: DEAD_LETTERS}
)
"""The columns of the tables that need no schema of bodies."""

#: The columns by which a table is partitioned besides the day, for all tables of messages alike.
_PARTITIONS: Final = ("vhost", "source", "source_name")

_PROPERTIES: Final = {
    "format-version": "2",
    "write.parquet.compression-codec": "zstd",
    # Each commit adds a manifest. Merging bounds their number.
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
    # Bounds of bodies select nothing.
    "write.metadata.metrics.column.body": "counts",
    "write.metadata.metrics.column.headers_json": "counts",
}

_SQLITE: Final = "sqlite:///"


def open_catalogue(address: IcebergAddress) -> Catalog:
    """Return the catalogue; a SQLite file is created if it is missing."""
    uri = address.properties.get("uri", "")
    if uri.startswith(_SQLITE):
        make_directory(Path(local_path(uri.removeprefix(_SQLITE))).absolute().parent)
    defaults = {"py-io-impl": "gateway.columnar.iceberg.synced_io.SyncedFileIO"}
    return load_catalog("gateway", **{**defaults, **address.properties})


def open_table(catalogue: Catalog, address: IcebergAddress, name: str, schema: pa.Schema) -> Table:
    """Return a table with at least these columns; it is created if it is missing.

    :raises ConfigurationError: if a column has a type that it cannot be changed to.
    """
    try:
        table = catalogue.load_table((address.namespace, name))
    except NoSuchTableError:
        table = _created(catalogue, address, name, schema)
    return evolve(table, schema, name)


def unretried(table: Table) -> Table:
    """Return the table, whose commits are no longer repeated by the library.

    A repetition has to look at the properties of the table first. This changes the copy in memory only.
    """
    table.metadata.properties["commit.retry.num-retries"] = "0"
    return table


def register_table(catalogue: Catalog, address: IcebergAddress, name: str) -> Table:
    """Add the table in a directory to the catalogue, which has lost it.

    :raises StorageError: if the directory has no table.
    """
    location = address.location_of(name)
    metadata = hinted_metadata(_io(catalogue, location), location)
    if metadata is None:
        raise StorageError(f"{location} has no table")
    catalogue.create_namespace_if_not_exists(address.namespace)
    return catalogue.register_table((address.namespace, name), metadata)


def _io(catalogue: Catalog, location: str) -> FileIO:
    return load_file_io(catalogue.properties, location)


def _created(catalogue: Catalog, address: IcebergAddress, name: str, schema: pa.Schema) -> Table:
    location = address.location_of(name)
    if hinted_metadata(_io(catalogue, location), location) is not None:
        raise StorageError(f"{location} has a table that the catalogue does not know: see gateway archive register")
    catalogue.create_namespace_if_not_exists(address.namespace)
    identifier = (address.namespace, name)
    try:
        with (
            catalogue.create_table_transaction(identifier, schema, location, properties=_PROPERTIES) as created,
            created.update_spec() as spec,
        ):
            for column in _PARTITIONS if "source" in schema.names else _PARTITIONS[:1]:
                spec.add_field(column, IdentityTransform(), column)
            spec.add_field("timestamp", DayTransform(), DAY)
    except TableAlreadyExistsError:  # another node was first
        pass
    return catalogue.load_table(identifier)
