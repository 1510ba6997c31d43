"""STOMP frames as a client writes and reads them, in all versions.

These modules follow from the specifications alone: they share nothing with the broker's codec, which they test.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

#: The escapes of header names and values: 1.0 has none, 1.2 has one more.
_ESCAPES: Final[Mapping[str, Mapping[str, str]]] = {
    "1.0": {},
    "1.1": {"\\": "\\\\", "\n": "\\n", ":": "\\c"},
    "1.2": {"\\": "\\\\", "\n": "\\n", ":": "\\c", "\r": "\\r"},
}

#: Frames whose headers have no escapes, so that 1.0 can read them.
_PLAIN: Final = frozenset({"CONNECT", "CONNECTED"})

#: The commands of a server.
_COMMANDS: Final = frozenset({"CONNECTED", "MESSAGE", "RECEIPT", "ERROR"})


class UnreadableFrame(Exception):
    """The broker sent what is no frame."""


@dataclass(frozen=True, slots=True)
class StompFrame:
    """A command, its headers and its body."""

    command: str
    headers: Mapping[str, str]
    body: bytes = b""


def write(frame: StompFrame, version: str) -> bytes:
    """Return the bytes of a frame; one with a body has its length."""
    headers = dict(frame.headers)
    if frame.body:
        headers["content-length"] = str(len(frame.body))
    escapes: Mapping[str, str] = {} if frame.command in _PLAIN else _ESCAPES[version]
    lines = (f"{_escaped(name, escapes)}:{_escaped(value, escapes)}\n" for name, value in headers.items())
    return f"{frame.command}\n{''.join(lines)}\n".encode() + frame.body + b"\0"


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    for character, escaped in escapes.items():  # the backslash is the first one
        text = text.replace(character, escaped)
    return text


class FrameReader:
    """Turns the broker's bytes into frames. ``version`` is the one that was agreed on."""

    def __init__(self) -> None:
        self.version = "1.0"
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[StompFrame]:
        """Add bytes; yield each frame that they complete. :raises UnreadableFrame: for anything else."""
        self._bytes += data
        while True:
            while self._bytes and self._bytes[0] in b"\n\r":  # heart-beats
                del self._bytes[0]
            frame = self._first()
            if frame is None:
                return
            yield frame

    def _first(self) -> StompFrame | None:
        end = self._bytes.find(b"\n\n")
        if end < 0:
            return None
        command, *lines = bytes(self._bytes[:end]).decode().split("\n")
        if command not in _COMMANDS:
            raise UnreadableFrame(f"{command!r} is no command of a broker")
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise UnreadableFrame(f"{line!r} is no header")
            headers.setdefault(self._plain(command, name), self._plain(command, value))
        start = end + 2
        if "content-length" in headers:
            stop = start + int(headers["content-length"])
        else:
            stop = self._bytes.find(b"\0", start)
        if not 0 <= stop < len(self._bytes):
            return None
        if self._bytes[stop]:
            raise UnreadableFrame(f"no NUL after the body of {command} {headers}")
        body = bytes(self._bytes[start:stop])
        del self._bytes[: stop + 1]
        return StompFrame(command, headers, body)

    def _plain(self, command: str, text: str) -> str:
        """Return a name or value without its escapes."""
        if "\\" not in text or command in _PLAIN or self.version == "1.0":
            return text
        escapes = {escaped: plain for plain, escaped in _ESCAPES[self.version].items()}
        plain, at = "", 0
        while at < len(text):
            size = 2 if text[at] == "\\" else 1
            piece = text[at : at + size]
            if size == 2 and piece not in escapes:
                raise UnreadableFrame(f"{piece!r} is no escape of {self.version}")
            plain += escapes.get(piece, piece)
            at += size
        return plain
