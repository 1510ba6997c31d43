"""The targets of archives, from the settings: a directory of Parquet files, or Iceberg tables."""

from pathlib import Path
from typing import Any, Final

from gateway.columnar.tables.iceberg_address import FILE_SCHEME, IcebergAddress
from gateway.config import Settings
from gateway.config.archive import catalogue_properties

ICEBERG: Final = "iceberg"
"""The directory of the Iceberg tables in that of the archive, and the format of the settings."""


def archive_directory(settings: Settings) -> Path:
    """Return the directory of the tables in the Parquet format."""
    return (settings.archive.directory or settings.data).absolute()


def archive_target(settings: Settings) -> Path | IcebergAddress:
    """Return the directory of the tables, or the address of the Iceberg tables."""
    return iceberg_address(settings) if settings.archive.format == ICEBERG else archive_directory(settings)


def archive_place(settings: Settings) -> dict[str, Any]:
    """Return where the tables are, for requests to the worker that read them."""
    target = archive_target(settings)
    return {"directory": str(target)} if isinstance(target, Path) else {"iceberg": target.as_head()}


def iceberg_address(settings: Settings) -> IcebergAddress:
    """Return the address of the Iceberg tables."""
    archive, directory = settings.archive, archive_directory(settings) / ICEBERG
    given = catalogue_properties(archive)
    uri = given.get("uri") or archive.catalog or f"sqlite:///{directory}/catalog.db"
    kind = "rest" if uri.startswith(("http://", "https://")) else "sql"
    location = archive.warehouse or f"{FILE_SCHEME}{directory}"
    properties = {"type": kind, "uri": uri, **given}
    if kind == "sql":
        properties.setdefault("warehouse", location)
    return IcebergAddress(properties, archive.namespace, location, archive.snapshots)
