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
from gateway.columnar.iceberg.version_hint import hinted_metadata
from gateway.columnar.tables.files import make_directory
from gateway.columnar.tables.iceberg_address import ARCHIVE_TABLE, TRACE_TABLE, IcebergAddress, local_path
from gateway.kernel.errors import StorageError

SOURCE: Final = pa.schema([("source", pa.string()), ("source_name", pa.string())])
"""The columns that the table of messages has in addition to those of a file in the Parquet layout."""

DAY: Final = "timestamp_day"
"""The partition field of the day."""

SCHEMAS: Final[Mapping[str, pa.Schema]] = MappingProxyType(
    {ARCHIVE_TABLE: pa.schema([*MESSAGES, *SOURCE]), TRACE_TABLE: TRACE}
)
"""The columns of each table."""

_PARTITIONS: Final = {ARCHIVE_TABLE: ("vhost", "source", "source_name"), TRACE_TABLE: ("vhost",)}

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


def open_table(catalogue: Catalog, address: IcebergAddress, name: str) -> Table:
    """Return a table with at least our columns; it is created if it is missing."""
    try:
        table = catalogue.load_table((address.namespace, name))
    except NoSuchTableError:
        table = _created(catalogue, address, name)
    return _evolved(table, SCHEMAS[name])


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


def _created(catalogue: Catalog, address: IcebergAddress, name: str) -> Table:
    location = address.location_of(name)
    if hinted_metadata(_io(catalogue, location), location) is not None:
        raise StorageError(f"{location} has a table that the catalogue does not know: see gateway archive register")
    catalogue.create_namespace_if_not_exists(address.namespace)
    identifier = (address.namespace, name)
    try:
        with (
            catalogue.create_table_transaction(identifier, SCHEMAS[name], location, properties=_PROPERTIES) as created,
            created.update_spec() as spec,
        ):
            for column in _PARTITIONS[name]:
                spec.add_field(column, IdentityTransform(), column)
            spec.add_field("timestamp", DayTransform(), DAY)
    except TableAlreadyExistsError:  # another node was first
        pass
    return catalogue.load_table(identifier)


def _evolved(table: Table, schema: pa.Schema) -> Table:
    """Add the columns that an older version of the gateway did not have."""
    if set(schema.names) <= {field.name for field in table.schema().fields}:
        return table
    with table.update_schema() as update:
        update.union_by_name(schema)
    return table
