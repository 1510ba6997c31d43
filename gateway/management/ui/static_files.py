"""The files of the web UI, which are data of this package."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from gzip import compress
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

#: Content types by suffix. Files with other suffixes, such as licences, are text.
CONTENT_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_TEXT: Final = "text/plain; charset=utf-8"

#: Path of the page itself.
_INDEX: Final = "/index.html"


@dataclass(frozen=True, slots=True)
class StaticFile:
    """One file: its content, the same compressed by gzip, its content type and its entity tag."""

    content: bytes
    compressed: bytes
    content_type: str
    etag: str


class StaticFiles:
    """The files below one directory by path. A file is read and compressed when it is first requested."""

    def __init__(self, root: Traversable | None = None) -> None:
        self._found = _packaged_files() if root is None else dict(_walk(root, ""))
        self._read: dict[str, StaticFile] = {}

    def file(self, path: str) -> StaticFile | None:
        """Return the file of a path such as ``/app.js``, or ``None``; ``/`` is the page."""
        path = _INDEX if path == "/" else path
        source = self._found.get(path)
        if source is None:
            return None
        file = self._read.get(path)
        if file is None:
            file = self._read[path] = _read(path, source)
        return file


@cache
def _packaged_files() -> Mapping[str, Traversable]:
    """Return the files of this package; a process of tests or of the simulation starts brokers by the thousand."""
    return dict(_walk(files("gateway.management.ui") / "static", ""))


def _walk(directory: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for entry in directory.iterdir():
        below = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _walk(entry, below)
        else:
            yield below, entry


def _read(path: str, source: Traversable) -> StaticFile:
    content = source.read_bytes()
    content_type = CONTENT_TYPES.get(path.rpartition(".")[2], _TEXT)
    return StaticFile(content, compress(content, mtime=0), content_type, f'"{sha256(content).hexdigest()[:32]}"')
