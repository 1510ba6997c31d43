"""Files of a table on a local disk, synced before the catalogue refers to them; object stores as pyiceberg has them."""

import os
from io import FileIO
from pathlib import Path

from pyiceberg.io import OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from gateway.columnar.tables.files import make_directory, sync_directory
from gateway.columnar.tables.iceberg_address import is_local, local_path


class SyncedFileIO(PyArrowFileIO):
    """Reads and writes files by pyarrow's file systems. A new local file survives a loss of power once it is closed."""

    def new_output(self, location: str) -> PyArrowFile:
        """Return a file to write."""
        if not is_local(location):
            return super().new_output(location)
        return _SyncedFile(location, local_path(location), self.fs_by_scheme("file", None))


class _SyncedFile(PyArrowFile):
    """A local file. It is written under its own name, because no reader knows it before the catalogue refers to it."""

    def create(self, overwrite: bool = False) -> OutputStream:
        path = Path(local_path(self.location))
        make_directory(path.parent)
        return _SyncedStream(path, "wb" if overwrite else "xb")


class _SyncedStream(FileIO):
    """An open file that is synced when it is closed."""

    def __init__(self, path: Path, mode: str) -> None:
        super().__init__(path, mode)
        self._path = path

    def close(self) -> None:
        if not self.closed:
            os.fsync(self.fileno())
            super().close()
            sync_directory(self._path.parent)
