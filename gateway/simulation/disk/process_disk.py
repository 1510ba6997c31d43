"""The simulated disk as one process uses it: ``gateway_lmdb.disk.Disk`` on simulated files.

Each operation is a switch point. Once its process was killed, no operation has an effect.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from gateway.kernel.errors import StorageError
from gateway.simulation.disk.device import Device
from gateway.simulation.disk.files import Directory, File, OverwrittenFile
from gateway.simulation.disk.lmdb_environment import SimulatedEnvironment
from gateway.simulation.disk.lmdb_file import LmdbFile
from gateway.simulation.disk.steps import Steps

if TYPE_CHECKING:
    from lmdb import Environment


#: The file of LMDB in its directory.
_LMDB_FILE: Final = "data.mdb"

#: How often a copy of LMDB's file waits, and how long, in seconds.
_MOST_COPY_STEPS: Final = 4
_COPY_STEP_S: Final = 0.05


class ProcessDisk:
    """The disk of one process."""

    is_synced = True

    def __init__(self, device: Device, steps: Steps) -> None:
        self._device = device
        self._files = device.files
        self._steps = steps
        self._locked: set[Path] = set()

    # Directories

    def lock(self, path: Path) -> Callable[[], None]:
        """Lock a directory."""
        self._files.directory(path)
        if path in self._locked:
            raise StorageError(f"the store in {path} is in use by process 1: stop it first")
        self._locked.add(path)
        return lambda: self._locked.discard(path)

    def exists(self, path: Path) -> bool:
        """Return whether there is a file or directory."""
        return self._files.find(path) is not None

    def listed(self, directory: Path) -> list[Path]:
        """Return the entries of a directory; none if it does not exist."""
        found = self._files.find(directory)
        return [directory / name for name in found.entries] if isinstance(found, Directory) else []

    def make_directory(self, path: Path, *, parents: bool = False) -> None:
        """Create a directory unless it exists."""
        if not self.exists(path):
            self._steps.step(f"mkdir {path.name}")
            self._require_space(1, path)
            self._files.make_directory(path, parents=parents)
        self._files.directory(path)

    def sync_directories(self, path: Path) -> None:
        """Sync a directory and its parent."""
        for directory in (path, path.parent):
            self._sync(f"sync {directory.name}/", self._files.directory(directory).sync)

    # Files

    def create(self, path: Path) -> "SimulatedNewFile":
        """Create an empty file."""
        self._steps.step(f"create {path.name}")
        self._require_space(1, path)
        file = File()
        self._files.put(path, file)
        return SimulatedNewFile(self._steps, file, path)

    def open_log(self, path: Path, size: int) -> "SimulatedLogFile":
        """Open a file of a size for writing."""
        found = self._files.find(path)
        if not isinstance(found, OverwrittenFile) or found.size != size:
            self._steps.step(f"create {path.name}")
            self._require_space(size, path)
            found = OverwrittenFile(size)
            self._files.put(path, found)
            self._sync(f"sync {path.name}", found.sync)
            self.sync_directories(path.parent)
        return SimulatedLogFile(self._steps, found, path)

    def open(self, path: Path) -> "SimulatedOpenFile":
        """Open a file for reading."""
        self._steps.pause()
        return SimulatedOpenFile(self._files.file(path))

    def size(self, path: Path) -> int:
        """Return the size of a file in bytes."""
        return self._files.file(path).size

    def free_bytes(self, path: Path) -> int:
        """Return the free space in bytes."""
        return self._device.free_bytes

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file."""
        self._steps.step(f"rename {path.name} {target.name}")
        self._files.rename(path, target)

    def link(self, path: Path, target: Path) -> None:
        """Give a file a second name."""
        self._steps.step(f"link {path.name}")
        if self.exists(target):
            raise FileExistsError(17, "File exists", str(target))
        self._files.put(target, self._files.file(path))

    def remove(self, path: Path) -> None:
        """Remove a file, if it exists."""
        self._steps.step(f"remove {path.name}")
        if self.exists(path):
            self._files.file(path)
            self._files.put(path, None)

    def remove_tree(self, path: Path) -> None:
        """Remove a directory with its content: first the files, one by one."""
        found = self._files.find(path)
        if isinstance(found, Directory):
            for name in list(found.entries):
                if isinstance(found.entries.get(name), Directory):
                    self.remove_tree(path / name)
                else:
                    self.remove(path / name)
            self._steps.step(f"rmdir {path.name}")
            if self._files.find(path) is found and not found.entries:
                self._files.put(path, None)

    # LMDB

    def require_whole(self, file: Path) -> None:
        """Do nothing: LMDB's roots refer only to pages that were synced before, or the disk lied."""

    def open_lmdb(self, path: Path, **options: Any) -> "Environment":
        """Open the LMDB environment in a directory."""
        file = self._lmdb_file(path)
        syncs = options.get("sync", True)
        opened = SimulatedEnvironment(
            self._steps, file, options["map_size"], options["max_dbs"], self._copy, syncs=syncs
        )
        return cast("Environment", opened)

    def _lmdb_file(self, path: Path) -> LmdbFile:
        """Return the file of LMDB in a directory; create it if there is none."""
        place = path / _LMDB_FILE
        if not self.exists(place):
            self._steps.step(f"create {_LMDB_FILE}")
            self._require_space(1, place)
            self._files.put(place, LmdbFile())
        file = self._files.file(place)
        assert isinstance(file, LmdbFile), f"{place} is no file of LMDB"
        return file

    def _copy(self, file: LmdbFile, directory: str) -> None:
        """Put a copy of LMDB's file into a directory."""
        place = Path(directory) / _LMDB_FILE
        self._steps.step(f"copy {_LMDB_FILE}")
        self._require_space(1, place)
        self._files.put(place, file.compact_copy())

    def copy_lmdb(
        self, source: Path, target: Path, wait: Callable[[float], bool], copied: Callable[[int], None]
    ) -> None:
        """Copy the state of one moment, in several steps."""
        copy = self._lmdb_file(source).compact_copy()
        for _ in range(self._device.random.randint(1, _MOST_COPY_STEPS)):
            if wait(_COPY_STEP_S):
                return
            copied(copy.size)
        self._steps.step(f"copy {_LMDB_FILE}")
        if self._device.space_fault(copy.page_count):
            raise StorageError("No space left on device")
        self._files.put(target / _LMDB_FILE, copy)

    @contextmanager
    def changing(self, path: Path) -> Iterator[bool]:
        """Yield ``True``: no other process copies the store."""
        yield True

    # For files

    def _require_space(self, size: int, path: Path) -> None:
        fault = self._device.space_fault(size)
        if fault:
            raise OSError(fault, os.strerror(fault), str(path))

    def _sync(self, operation: str, sync: Callable[[], None]) -> None:
        fault = self._steps.sync(operation)
        if fault:
            raise OSError(fault, os.strerror(fault))
        self._steps.synced(sync)


class SimulatedNewFile:
    """A file that is being written."""

    def __init__(self, steps: Steps, file: File, path: Path) -> None:
        self._steps = steps
        self._file = file
        self._path = path

    def write(self, data: bytes) -> None:
        """Append data; a full disk may take a part of it."""
        self._steps.step(f"write {self._path.name} {len(data)}")
        fault = self._steps.space_fault(len(data))
        if fault:
            self._file.data += data[: len(data) // 2]
            raise OSError(fault, os.strerror(fault), str(self._path))
        self._file.data += data

    def sync(self) -> None:
        """Make everything written durable."""
        fault = self._steps.sync(f"sync {self._path.name}")
        if fault:
            raise OSError(fault, os.strerror(fault), str(self._path))
        self._steps.synced(self._file.sync)

    def close(self) -> None:
        """Do nothing: a simulated file needs no descriptor."""


class SimulatedLogFile:
    """A file of a fixed size that is written over."""

    def __init__(self, steps: Steps, file: OverwrittenFile, path: Path) -> None:
        self._steps = steps
        self._file = file
        self._path = path

    def write(self, data: bytes, position: int) -> None:
        """Write data over the content, and sync it."""
        self._steps.step(f"write {self._path.name} {len(data)}")
        self._file.write(data, position)
        fault = self._steps.sync(f"sync {self._path.name}")
        if fault:
            raise OSError(fault, os.strerror(fault), str(self._path))
        self._steps.synced(self._file.sync)

    def close(self) -> None:
        """Do nothing: a simulated file needs no descriptor."""


class SimulatedOpenFile:
    """A file that is open for reading; it can be read even when it was removed meanwhile."""

    def __init__(self, file: File) -> None:
        self._file = file
        self.size = file.size

    def read(self, size: int, position: int) -> bytes:
        """Return up to ``size`` bytes from a position on."""
        return bytes(self._file.data[position : position + size])

    def close(self) -> None:
        """Do nothing: a simulated file needs no descriptor."""
