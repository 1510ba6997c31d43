"""The check of schema files before the broker starts: each is valid, and its table can take it."""

from collections.abc import Iterable

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError

from gateway.columnar.iceberg.catalogue import open_catalogue
from gateway.columnar.iceberg.evolution import evolution
from gateway.columnar.iceberg.typed_commits import TypedTable
from gateway.columnar.tables.iceberg_address import IcebergAddress
from gateway.columnar.tables.schema_files import SchemaFile
from gateway.kernel.errors import ConfigurationError


def schema_faults(address: IcebergAddress, files: Iterable[SchemaFile]) -> list[str]:
    """Return a line for each file that is not valid, or that its table cannot take.

    A catalogue that does not answer is no fault: the broker starts without it, and files once it is there.
    """
    faults = []
    catalogue: Catalog | None = None
    for file in files:
        try:
            typed = TypedTable(file)
            try:
                catalogue = catalogue or open_catalogue(address)
                table = catalogue.load_table((address.namespace, file.table))
            except NoSuchTableError:
                continue
            except ConfigurationError:
                raise
            except Exception:  # any error of a database or a server
                continue
            evolution(table, typed.schema, file.table)
        except ConfigurationError as error:
            faults.append(f"{file.path}: {' '.join(str(error).split())}")
    return faults
