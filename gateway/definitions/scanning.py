"""Incremental JSON decoding, for documents that would block the event loop for too long.

The decoder of the standard library holds the interpreter lock during a whole call, in another thread too. A definitions
file is one object of long lists, so its entries are decoded one by one.
"""

import re
from collections.abc import Generator, Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Final

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_decode: Final = JSONDecoder().raw_decode


def scan(text: str) -> Generator[None, None, object]:
    """Decode a document, one entry of its top-level lists per step; return the result of ``json.loads``.

    :raises ValueError: if it is not JSON, with the position.
    :raises RecursionError: if an entry is nested too deeply.
    """
    scanner = _Scanner(text)
    if scanner.skip("{"):
        document: object = yield from _members(scanner)
    else:
        document = scanner.value()
    scanner.require_end()
    return document


def _members(scanner: "_Scanner") -> Generator[None, None, dict[str, object]]:
    members: dict[str, object] = {}
    for _ in scanner.parts("}"):
        name = scanner.name()
        scanner.require(":")
        if scanner.skip("["):
            members[name] = yield from _entries(scanner)
        else:
            members[name] = scanner.value()
        yield
    return members


def _entries(scanner: "_Scanner") -> Generator[None, None, list[object]]:
    entries: list[object] = []
    for _ in scanner.parts("]"):
        entries.append(scanner.value())
        yield
    return entries


class _Scanner:
    """A position in a text. All methods skip white space first."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def value(self) -> object:
        """Decode the value at this position."""
        self._skip_space()
        value, self._position = _decode(self._text, self._position)
        return value

    def name(self) -> str:
        """Decode the name of an object's member."""
        self._skip_space()
        position = self._position
        name = self.value() if self._text.startswith('"', position) else None
        if not isinstance(name, str):
            raise JSONDecodeError("Expecting property name enclosed in double quotes", self._text, position)
        return name

    def parts(self, end: str) -> Iterator[None]:
        """Yield at each item of a list or object up to ``end``; the caller decodes the item."""
        if self.skip(end):
            return
        while True:
            yield
            if self.skip(end):
                return
            self.require(",")

    def skip(self, mark: str) -> bool:
        """Skip a mark if it is next; return whether it was."""
        self._skip_space()
        if not self._text.startswith(mark, self._position):
            return False
        self._position += len(mark)
        return True

    def require(self, mark: str) -> None:
        """Skip a mark that must be next."""
        if not self.skip(mark):
            raise JSONDecodeError(f"Expecting {mark!r} delimiter", self._text, self._position)

    def require_end(self) -> None:
        """Require that nothing follows."""
        self._skip_space()
        if self._position != len(self._text):
            raise JSONDecodeError("Extra data", self._text, self._position)

    def _skip_space(self) -> None:
        space = _SPACE.match(self._text, self._position)
        assert space is not None  # it may be empty, so it always matches
        self._position = space.end()
