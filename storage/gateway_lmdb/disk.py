"""The port through which the store uses the disk, and its implementation by the system's files.

Everything that the store asks of files goes through a ``Disk``, so that a simulation can run the store on a disk that
fails on purpose (``gateway.simulation.disk``).
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import lmdb

from gateway.kernel.errors import StorageError
from gateway_lmdb import copy_lock, inspection

_POLL_S: Final = 0.05

#: The file whose lock shows which process uses a store.
_LOCK_FILE: Final = "owner.lock"


class NewFile(Protocol):
    """A file that is being written, from its start to its end."""

    def write(self, data: bytes) -> None:
        """Append data, durable after ``sync``."""
        ...

    def sync(self) -> None:
        """Make everything written durable."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class OpenFile(Protocol):
    """A file that is open for reading; ``size`` is its size in bytes."""

    @property
    def size(self) -> int:
        """The size at the time of opening, in bytes."""
        ...

    def read(self, size: int, position: int) -> bytes:
        """Return up to ``size`` bytes from a position on."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class LogFile(Protocol):
    """A file of a fixed size, whose content is written over."""

    def write(self, data: bytes, position: int) -> None:
        """Write data over the content at a position, durable on return. After an error a part of it may be there."""
        ...

    def close(self) -> None:
        """Close the file."""
        ...


class Disk(Protocol):
    """The calls of the store to the disk, made on any of its threads. Each may raise an ``OSError``.

    New names of files and directories are durable after ``sync_directories``. Nothing has to survive unless it
    ``is_synced``.
    """

    @property
    def is_synced(self) -> bool:
        """Whether what is written has to be durable."""
        ...

    def lock(self, path: Path) -> Callable[[], None]:
        """Lock a directory for this process; return the call that releases it. :raises StorageError: when in use."""
        ...

    def exists(self, path: Path) -> bool:
        """Return whether there is a file or directory."""
        ...

    def require_whole(self, file: Path) -> None:
        """Check the pages of an LMDB file that a start reads. :raises StorageError: when it is damaged."""
        ...

    def open_lmdb(self, path: Path, **options: Any) -> lmdb.Environment:
        """Open the LMDB environment in a directory, with the options of ``lmdb.open``."""
        ...

    def copy_lmdb(
        self, source: Path, target: Path, wait: Callable[[float], bool], copied: Callable[[int], None]
    ) -> None:
        """Write a compact copy of a store that is in use into a directory, without using this process's memory.

        ``wait`` is called repeatedly with a time in seconds, waits so long, and returns ``True`` to cancel; ``copied``
        is called with the bytes copied so far.

        :raises StorageError: with the reason when the copy cannot be made; a cancelled copy is incomplete.
        """
        ...

    def changing(self, path: Path) -> AbstractContextManager[bool]:
        """Prevent copies of the store in a directory during the block; yield ``False`` when one is in progress."""
        ...

    def sync_directories(self, path: Path) -> None:
        """Make the names in a directory durable, and its own name."""
        ...

    def make_directory(self, path: Path, *, parents: bool = False) -> None:
        """Create a directory for this user only, unless it exists."""
        ...

    def listed(self, directory: Path) -> list[Path]:
        """Return the entries of a directory; none if it does not exist."""
        ...

    def create(self, path: Path) -> NewFile:
        """Create an empty file for this user only, or empty an existing one."""
        ...

    def open(self, path: Path) -> OpenFile:
        """Open a file for reading."""
        ...

    def open_log(self, path: Path, size: int) -> LogFile:
        """Open a file of a size for writing, and fill it with zeros first if it is new or of another size."""
        ...

    def size(self, path: Path) -> int:
        """Return the size of a file in bytes."""
        ...

    def free_bytes(self, path: Path) -> int:
        """Return the free space of the file system that holds a directory, in bytes."""
        ...

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file; an existing file of the new name is replaced."""
        ...

    def link(self, path: Path, target: Path) -> None:
        """Give a file a second name."""
        ...

    def remove(self, path: Path) -> None:
        """Remove a file, if it exists."""
        ...

    def remove_tree(self, path: Path) -> None:
        """Remove a directory with its content as far as possible; raises nothing."""
        ...


def owner_of(path: Path) -> int | None:
    """Return the id of the process that runs on a store's directory, or ``None``; the lock is not touched."""
    try:
        inode = (path / _LOCK_FILE).stat().st_ino
        locks = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    for fields in map(str.split, locks):  # such as "1: FLOCK ADVISORY WRITE 2689 08:01:1442 0 EOF"
        if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == str(inode) and _may_hold(int(fields[4]), path):
            return int(fields[4])
    return None


def _may_hold(process_id: int, path: Path) -> bool:
    """Return whether a process has the lock file of a store open, as far as the system shows it.

    Another file system may have a file of the same number. A process outside of the container has the number 0.
    """
    try:
        files = [os.readlink(each) for each in Path(f"/proc/{process_id}/fd").iterdir()]
    except PermissionError:
        return True
    except OSError:
        return False
    return str((path / _LOCK_FILE).resolve()) in files


class SystemDisk:
    """The disk of the system."""

    is_synced = True

    def lock(self, path: Path) -> Callable[[], None]:
        """Lock with ``owner.lock``: the system releases it when the descriptor is closed, or the process ends."""
        descriptor = os.open(path / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise StorageError(f"the store in {path} is in use by process {owner}: stop it first") from None
        with suppress(OSError):  # on a full disk the lock has no process id
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        return lambda: os.close(descriptor)

    def exists(self, path: Path) -> bool:
        """Return whether there is a file or directory."""
        return path.exists()

    def require_whole(self, file: Path) -> None:
        """Check the pages of an LMDB file that a start reads."""
        inspection.require_whole(file)

    def open_lmdb(self, path: Path, **options: Any) -> lmdb.Environment:
        """Open the LMDB environment in a directory."""
        return lmdb.open(str(path), **options)

    def copy_lmdb(
        self, source: Path, target: Path, wait: Callable[[float], bool], copied: Callable[[int], None]
    ) -> None:
        """Copy in another process: the pages it reads do not count as the broker's memory."""
        command = [sys.executable, "-m", "gateway_lmdb.copying", str(source), str(target)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as child:
            is_cancelled = False
            while child.poll() is None:
                if wait(_POLL_S):
                    is_cancelled = True
                    child.kill()
                with suppress(OSError):
                    copied((target / "data.mdb").stat().st_size)
            reason = (child.stderr.read() if child.stderr is not None else b"").decode(errors="replace").strip()
        if child.returncode and not is_cancelled:
            raise StorageError(reason.splitlines()[-1] if reason else f"the copy ended with {child.returncode}")

    def changing(self, path: Path) -> AbstractContextManager[bool]:
        """Prevent copies with ``copy.lock``."""
        return copy_lock.changing(path)

    def sync_directories(self, path: Path) -> None:
        """Sync a directory and its parent."""
        for directory in (path, path.parent):
            descriptor = os.open(directory, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def make_directory(self, path: Path, *, parents: bool = False) -> None:
        """Create a directory for this user only, unless it exists."""
        path.mkdir(mode=0o700, parents=parents, exist_ok=True)

    def listed(self, directory: Path) -> list[Path]:
        """Return the entries of a directory; none if it does not exist."""
        try:
            return list(directory.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def create(self, path: Path) -> NewFile:
        """Create an empty file for this user only, or empty an existing one."""
        return _WrittenFile(open(path, "wb", opener=private))

    def open(self, path: Path) -> OpenFile:
        """Open a file for reading."""
        return _ReadFile(path)

    def open_log(self, path: Path, size: int) -> LogFile:
        """Open a file of a size for writing. It is filled with zeros first: later writes change its content only."""
        if not path.exists() or path.stat().st_size != size:
            file = self.create(path)
            try:
                file.write(bytes(size))
                file.sync()
            finally:
                file.close()
            self.sync_directories(path.parent)
        return _LogFile(path)

    def size(self, path: Path) -> int:
        """Return the size of a file in bytes."""
        return path.stat().st_size

    def free_bytes(self, path: Path) -> int:
        """Return the free space of the file system that holds a directory, in bytes."""
        return shutil.disk_usage(path).free

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file; an existing file of the new name is replaced."""
        os.replace(path, target)

    def link(self, path: Path, target: Path) -> None:
        """Give a file a second name."""
        os.link(path, target)

    def remove(self, path: Path) -> None:
        """Remove a file, if it exists."""
        path.unlink(missing_ok=True)

    def remove_tree(self, path: Path) -> None:
        """Remove a directory with its content as far as possible."""
        shutil.rmtree(path, ignore_errors=True)


class _WrittenFile:
    """A buffered file; its descriptor is not inherited."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        """Append data to the buffer."""
        self._file.write(data)

    def sync(self) -> None:
        """Write the buffered content, and sync it."""
        self._file.flush()
        os.fdatasync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _ReadFile:
    """A file that is read at positions."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._descriptor).st_size

    def read(self, size: int, position: int) -> bytes:
        """Return up to ``size`` bytes from a position on."""
        return os.pread(self._descriptor, size, position)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class _LogFile:
    """A file whose writes are durable on return: one system call, so that the interpreter is released once."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_DSYNC)

    def write(self, data: bytes, position: int) -> None:
        """Write data over the content at a position."""
        written = os.pwrite(self._descriptor, data, position)
        while written < len(data):
            written += os.pwrite(self._descriptor, data[written:], position + written)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def private(path: str, flags: int) -> int:
    """Open a file for this user only; not inherited by child processes."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


#: The disk that a store uses unless it gets another one.
SYSTEM_DISK: Final = SystemDisk()
