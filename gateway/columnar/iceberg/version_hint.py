"""``metadata/version-hint.text``: the name of the current metadata, for readers that know a directory and no catalogue.

The hint follows the commit. After a crash it may name the metadata before, which is complete, too.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from pyiceberg.table import Table

from gateway.columnar.tables.files import replaced
from gateway.columnar.tables.iceberg_address import is_local, local_path

_HINT: Final = "version-hint.text"
_SUFFIX: Final = ".metadata.json"


def write_hint(table: Table) -> None:
    """Write the hint of a table, unless it is right."""
    location = table.location_provider().new_metadata_location(_HINT)
    version = table.metadata_location.rpartition("/")[2].removesuffix(_SUFFIX).encode()
    with suppress(OSError):  # the table is right without it
        if is_local(location):
            _replace(Path(local_path(location)), version)
        else:
            with table.io.new_output(location).create(overwrite=True) as file:
                file.write(version)


def _replace(path: Path, version: bytes) -> None:
    if not path.exists() or path.read_bytes() != version:
        with replaced(path) as file:
            file.write(version)
