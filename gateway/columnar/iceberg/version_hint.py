"""``metadata/version-hint.text``: the name of the current metadata, for readers that know a directory and no catalogue.

The hint follows the commit. After a crash it may name the metadata before, which is complete, too.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from pyiceberg.io import FileIO
from pyiceberg.table import Table

from gateway.columnar.tables.files import replaced
from gateway.columnar.tables.iceberg_address import is_local, local_path

HINT: Final = "version-hint.text"
_SUFFIX: Final = ".metadata.json"


def write_hint(table: Table) -> None:
    """Write the hint of a table, unless it is right."""
    location = table.location_provider().new_metadata_location(HINT)
    version = table.metadata_location.rpartition("/")[2].removesuffix(_SUFFIX).encode()
    with suppress(OSError):  # the table is right without it
        if is_local(location):
            _replace(Path(local_path(location)), version)
        else:
            with table.io.new_output(location).create(overwrite=True) as file:
                file.write(version)


def hinted_metadata(io: FileIO, location: str) -> str | None:
    """Return the location of the metadata that the hint in a table's directory names, ``None`` without a hint."""
    try:
        with io.new_input(f"{location}/metadata/{HINT}").open() as file:
            return f"{location}/metadata/{file.read().decode()}{_SUFFIX}"
    except FileNotFoundError:
        return None


def _replace(path: Path, version: bytes) -> None:
    if not path.exists() or path.read_bytes() != version:
        with replaced(path) as file:
            file.write(version)
