"""JSON read an entry at a time, for documents that are too large to be read while others wait.

The decoder of the standard library keeps the interpreter to itself for as long as one call takes, in another thread as
well. A definitions file is one object of long lists, so its entries are decoded one by one.
"""

import re
from collections.abc import Generator, Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Final

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_decode: Final = JSONDecoder().raw_decode


def scan(text: str) -> Generator[None, None, object]:
    """Decode a document, an entry of the lists at its top each time this is asked on; return what ``json.loads`` would.

    :raises ValueError: when it is not JSON, saying where.
    :raises RecursionError: when an entry is nested too deeply.
    """
    scanner = _Scanner(text)
    if scanner.takes("{"):
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
        if scanner.takes("["):
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
    """A place in a text. Space is passed over before everything else."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def value(self) -> object:
        """Decode the value that begins here."""
        self._pass_space()
        value, self._place = _decode(self._text, self._place)
        return value

    def name(self) -> str:
        """Decode the name of a member."""
        self._pass_space()
        place = self._place
        name = self.value() if self._text.startswith('"', place) else None
        if not isinstance(name, str):
            raise JSONDecodeError("Expecting property name enclosed in double quotes", self._text, place)
        return name

    def parts(self, end: str) -> Iterator[None]:
        """Stop at each part of a list or object, for whoever asks to read it, until the ``end``."""
        if self.takes(end):
            return
        while True:
            yield
            if self.takes(end):
                return
            self.require(",")

    def takes(self, mark: str) -> bool:
        """Pass over a mark if it comes next; return whether it did."""
        self._pass_space()
        if not self._text.startswith(mark, self._place):
            return False
        self._place += len(mark)
        return True

    def require(self, mark: str) -> None:
        """Pass over a mark that has to come next."""
        if not self.takes(mark):
            raise JSONDecodeError(f"Expecting {mark!r} delimiter", self._text, self._place)

    def require_end(self) -> None:
        """Insist that nothing follows."""
        self._pass_space()
        if self._place != len(self._text):
            raise JSONDecodeError("Extra data", self._text, self._place)

    def _pass_space(self) -> None:
        space = _SPACE.match(self._text, self._place)
        assert space is not None  # it may be empty, so it always matches
        self._place = space.end()
