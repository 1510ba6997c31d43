"""Files and directories of a simulated disk: what was written, and what of it survives a loss of power."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Final, TypeAlias

#: Shares of what may happen to the part of a file that was not synced, in a loss of power.
_SHARE_OF_ZEROS: Final = 0.2
_SHARE_OF_FLIPS: Final = 0.3

#: The part of a file that a disk writes as a whole, in bytes.
SECTOR: Final = 512


class File:
    """A file that is appended to. ``synced`` bytes at its start are durable."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.synced = 0

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self.data)

    def sync(self) -> None:
        """Make everything written durable."""
        self.synced = len(self.data)

    def lose_power(self, random: Random) -> None:
        """Tear the part that was not synced: cut it, and maybe replace it with zeros, or change a bit."""
        tail = len(self.data) - self.synced
        if tail:
            kept = self.synced + random.randint(0, tail)
            del self.data[kept:]
            if kept > self.synced:
                self._damage(random, kept)
        self.synced = len(self.data)

    def freeze(self) -> Callable[[], None]:
        """Return a call that restores what is durable now."""
        synced = self.synced

        def restore() -> None:
            del self.data[synced:]
            self.synced = synced

        return restore

    def _damage(self, random: Random, end: int) -> None:
        fate = random.random()
        at = random.randrange(self.synced, end)
        if fate < _SHARE_OF_ZEROS:
            self.data[at:end] = bytes(end - at)
        elif fate < _SHARE_OF_ZEROS + _SHARE_OF_FLIPS:
            self.data[at] ^= 1 << random.randrange(8)


class OverwrittenFile(File):
    """A file of a fixed size that is written over. In a loss of power each sector that was not synced is old or new."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.data = bytearray(size)
        self.synced = size
        self._old_sectors: dict[int, bytes] = {}

    def write(self, data: bytes, position: int) -> None:
        """Write data over the content, not synced."""
        for start in range(position // SECTOR * SECTOR, position + len(data), SECTOR):
            self._old_sectors.setdefault(start, bytes(self.data[start : start + SECTOR]))
        self.data[position : position + len(data)] = data

    def sync(self) -> None:
        """Make everything written durable."""
        self._old_sectors.clear()

    def lose_power(self, random: Random) -> None:
        """Keep some of the sectors that were not synced."""
        for start, old in self._old_sectors.items():
            if random.random() < 0.5:
                self.data[start : start + SECTOR] = old
        self._old_sectors.clear()

    def freeze(self) -> Callable[[], None]:
        """Return a call that restores what is durable now."""
        durable = bytearray(self.data)
        for start, old in self._old_sectors.items():
            durable[start : start + SECTOR] = old

        def restore() -> None:
            self.data[:] = durable
            self._old_sectors.clear()

        return restore


class Directory:
    """A directory: names become durable in the order of their changes, up to the last sync at least."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self._durable: dict[str, Entry] = {}
        self._unsynced: list[dict[str, Entry | None]] = []

    def change(self, changes: "dict[str, Entry | None]") -> None:
        """Set or remove names, all at once."""
        _apply(self.entries, changes)
        self._unsynced.append(changes)

    def sync(self) -> None:
        """Make all names durable."""
        self._durable = dict(self.entries)
        self._unsynced.clear()

    def lose_power(self, random: Random) -> None:
        """Forget some of the last changes of names; then the same for everything below."""
        survivors = random.randint(0, len(self._unsynced)) if self._unsynced else 0
        for changes in self._unsynced[:survivors]:
            _apply(self._durable, changes)
        self.entries = self._durable
        self.sync()
        for entry in self.entries.values():
            entry.lose_power(random)

    def freeze(self) -> Callable[[], None]:
        """Return a call that restores what is durable now, here and below."""
        durable = dict(self._durable)
        calls = [entry.freeze() for entry in durable.values()]

        def restore() -> None:
            self.entries = dict(durable)
            self.sync()
            for call in calls:
                call()

        return restore


Entry: TypeAlias = File | Directory


def _apply(entries: dict[str, Entry], changes: dict[str, Entry | None]) -> None:
    for name, entry in changes.items():
        if entry is None:
            entries.pop(name, None)
        else:
            entries[name] = entry


class FileTree:
    """All files of a disk, by absolute path. Raises an ``OSError`` as the system does."""

    def __init__(self) -> None:
        self.root = Directory()

    def find(self, path: Path) -> Entry | None:
        """Return the file or directory at a path; ``None`` if there is none."""
        entry: Entry | None = self.root
        for name in path.parts[1:]:
            if not isinstance(entry, Directory):
                return None
            entry = entry.entries.get(name)
        return entry

    def directory(self, path: Path) -> Directory:
        """Return the directory at a path."""
        found = self.find(path)
        if found is None:
            raise FileNotFoundError(2, "No such file or directory", str(path))
        if not isinstance(found, Directory):
            raise NotADirectoryError(20, "Not a directory", str(path))
        return found

    def file(self, path: Path) -> File:
        """Return the file at a path."""
        found = self.find(path)
        if found is None:
            raise FileNotFoundError(2, "No such file or directory", str(path))
        if not isinstance(found, File):
            raise IsADirectoryError(21, "Is a directory", str(path))
        return found

    def make_directory(self, path: Path, *, parents: bool) -> bool:
        """Create a directory unless it exists; return whether it did not."""
        found = self.find(path)
        if found is not None:
            if isinstance(found, Directory):
                return False
            raise FileExistsError(17, "File exists", str(path))
        if parents and self.find(path.parent) is None:
            self.make_directory(path.parent, parents=True)
            self.directory(path.parent.parent).sync()  # an operator made them long ago
        self.directory(path.parent).change({path.name: Directory()})
        return True

    def put(self, path: Path, entry: Entry | None) -> None:
        """Set the file or directory at a path, or remove it."""
        self.directory(path.parent).change({path.name: entry})

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file."""
        file = self.file(path)
        if path.parent == target.parent:
            self.directory(path.parent).change({path.name: None, target.name: file})
        else:
            self.put(target, file)
            self.put(path, None)

    def walk(self, path: Path) -> Iterator[tuple[Path, File]]:
        """Yield all files below a path."""
        found = self.find(path)
        if isinstance(found, File):
            yield path, found
        elif found is not None:
            for name in found.entries:
                yield from self.walk(path / name)
