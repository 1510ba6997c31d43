"""Removal of files that no snapshot of a table refers to: of crashed commits, and of expired rows and snapshots."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import Table

from gateway.columnar.iceberg.version_hint import HINT
from gateway.columnar.tables.adopted import adopted_files
from gateway.columnar.tables.iceberg_address import is_local, local_path
from gateway.kernel.errors import StorageError


def tidy(table: Table, parquet_root: Path | None, before: datetime) -> int:
    """Remove files last modified before a time; return their number.

    These are the files in the table's directory, and those below ``parquet_root`` that the table has adopted.

    :raises StorageError: if the listing of the table's directory lacks files of the table; nothing is removed.
    """
    kept = {_path(location) for location in _referenced(table)}
    system, root = _directory(table)
    found = system.get_file_info(FileSelector(root, recursive=True, allow_not_found=True))
    missing = {path for path in kept if path.startswith(f"{root}/")} - {info.path for info in found}
    if missing:
        raise StorageError(f"{min(missing)} belongs to the table and is not in {root}: nothing is removed")
    count = 0
    for info in found:
        if info.type is FileType.File and info.base_name != HINT and info.mtime < before and info.path not in kept:
            system.delete_file(info.path)
            count += 1
    for path in adopted_files(parquet_root) if parquet_root is not None else ():
        if str(path) not in kept and path.exists() and path.stat().st_mtime < before.timestamp():
            path.unlink()
            count += 1
    return count


def _directory(table: Table) -> tuple[FileSystem, str]:
    """Return the directory of a table, and the file system that lists it."""
    location = table.location().rstrip("/")
    if is_local(location):
        return LocalFileSystem(), local_path(location)
    scheme, netloc, path = PyArrowFileIO.parse_location(location, table.io.properties)
    return PyArrowFileIO(table.io.properties).fs_by_scheme(scheme, netloc), path


def _path(location: str) -> str:
    """Return a location as the file system lists it."""
    return local_path(location) if is_local(location) else PyArrowFileIO.parse_location(location)[2]


def _referenced(table: Table) -> Iterator[str]:
    """Yield the locations of all files that the metadata refers to."""
    yield table.metadata_location
    yield from (entry.metadata_file for entry in table.metadata.metadata_log)
    yield from (statistics.statistics_path for statistics in table.metadata.statistics)
    manifests = {}
    for snapshot in table.snapshots():
        yield snapshot.manifest_list
        manifests.update({manifest.manifest_path: manifest for manifest in snapshot.manifests(table.io)})
    for path, manifest in manifests.items():
        yield path
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            yield entry.data_file.file_path
