"""An incremental parser of a byte stream that is cut anywhere: a generator of steps that show or hide bytes.

A grammar is a generator. It yields a step for the next bytes and gets the result of the step. Bytes are hidden, each as
an ``x``, unless a step shows them; what follows the end of the grammar, or an ``Unreadable``, is hidden.
"""

from collections.abc import Generator
from typing import Any, Final, Protocol

#: What a hidden byte becomes.
HIDDEN: Final = b"x"


class Unreadable(Exception):
    """The bytes are not what the grammar expects."""


class ParsingStep:
    """Something to do with the next bytes. ``take`` is called until ``is_done``; ``result`` is for the grammar.

    ``has_failed``: the bytes are not what the step expects, so the rest is hidden.
    """

    is_done = False
    has_failed = False
    result: Any = None

    def take(self, data: bytes, at: int, out: bytearray) -> int:
        """Take bytes of ``data`` from ``at`` on, and append as many to ``out``; return the end of what was taken."""
        raise NotImplementedError

    def held(self) -> int:
        """Return the number of bytes that were taken and are not in ``out`` yet."""
        return 0


Grammar = Generator[ParsingStep, Any, None]


class Read(ParsingStep):
    """Shows some bytes; they are the result."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.result = b""
        self.is_done = not size

    def take(self, data: bytes, at: int, out: bytearray) -> int:
        """See ``ParsingStep``."""
        piece = data[at : at + self._left]
        out += piece
        self.result += piece
        self._left -= len(piece)
        self.is_done = not self._left
        return at + len(piece)


class Skip(ParsingStep):
    """Passes some bytes, shown or hidden."""

    def __init__(self, size: int, *, hides: bool = False) -> None:
        self._left = size
        self._hides = hides
        self.is_done = not size

    def take(self, data: bytes, at: int, out: bytearray) -> int:
        """See ``ParsingStep``."""
        end = min(len(data), at + self._left)
        out += HIDDEN * (end - at) if self._hides else data[at:end]
        self._left -= end - at
        self.is_done = not self._left
        return end


class ReadUntil(ParsingStep):
    """Shows bytes up to one of the ``stops``, itself included; they are the result. It fails after ``most`` bytes."""

    def __init__(self, stops: bytes, most: int) -> None:
        self._stops = stops
        self._most = most
        self.result = b""

    def take(self, data: bytes, at: int, out: bytearray) -> int:
        """See ``ParsingStep``."""
        end, is_found = _end_of(data, at, self._stops)
        most = at + self._most - len(self.result)
        self.has_failed = end > most
        self.is_done = is_found and not self.has_failed
        end = min(end, most)
        out += data[at:end]
        self.result += data[at:end]
        return end


class SkipUntil(ParsingStep):
    """Passes bytes up to one of the ``stops``, which is the result. The stop, CR and spaces at the front are shown."""

    def __init__(self, stops: bytes, *, hides: bool = False) -> None:
        self._stops = stops
        self._hides = hides
        self._is_front = True

    def take(self, data: bytes, at: int, out: bytearray) -> int:
        """See ``ParsingStep``."""
        end, self.is_done = _end_of(data, at, self._stops)
        inner = data[at : end - 1] if self.is_done else data[at:end]
        if self._hides:
            out += b"".join(self._hidden(byte) for byte in inner)
        else:
            out += inner
        if self.is_done:
            self.result = data[end - 1 : end]
            out += self.result
        return end

    def _hidden(self, byte: int) -> bytes:
        self._is_front = self._is_front and byte == 0x20
        return bytes((byte,)) if byte == 0x0D or self._is_front else HIDDEN


class Hold(ParsingStep):
    """Takes some bytes without showing them; they are the result. The grammar shows a substitute with ``Emit``."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.result = b""
        self.is_done = not size

    def take(self, data: bytes, at: int, out: bytearray) -> int:
        """See ``ParsingStep``."""
        piece = data[at : at + self._left]
        self.result += piece
        self._left -= len(piece)
        self.is_done = not self._left
        return at + len(piece)

    def held(self) -> int:
        """See ``ParsingStep``."""
        return len(self.result)


class HoldUntil(ParsingStep):
    """As ``Hold``, up to one of the ``stops``, itself included. Longer bytes are hidden, and the result is ``None``."""

    def __init__(self, stops: bytes, most: int) -> None:
        self._stops = stops
        self._most = most
        self._held = b""
        self._is_too_long = False

    def take(self, data: bytes, at: int, out: bytearray) -> int:
        """See ``ParsingStep``."""
        end, self.is_done = _end_of(data, at, self._stops)
        self._held += data[at:end]
        if self._is_too_long or len(self._held) > self._most:
            self._is_too_long = True
            out += HIDDEN * (len(self._held) - self.is_done)
            self._held = b""
            if self.is_done:
                out += data[end - 1 : end]
        elif self.is_done:
            self.result = self._held
        return end

    def held(self) -> int:
        """See ``ParsingStep``."""
        return len(self._held)


class Emit(ParsingStep):
    """Shows bytes in place of those that were held."""

    is_done = True

    def __init__(self, data: bytes) -> None:
        self.data = data


class ByteFilter(Protocol):
    """Replaces bytes by as many others."""

    def feed(self, data: bytes) -> bytes:
        """Return the substitute of the next bytes."""
        ...


class Nested(ParsingStep):
    """Passes bytes through a filter, such as a parser that holds none; ``key`` is the mask of a WebSocket frame."""

    def __init__(self, size: int, key: bytes, parser: "ByteFilter") -> None:
        self._left = size
        self._key = key
        self._parser = parser
        self.is_done = not size

    def take(self, data: bytes, at: int, out: bytearray) -> int:
        """See ``ParsingStep``."""
        piece = data[at : at + self._left]
        key = self._key
        out += _mixed(self._parser.feed(_mixed(piece, key)), key)
        self._left -= len(piece)
        self._key = key[len(piece) % 4 :] + key[: len(piece) % 4]
        self.is_done = not self._left
        return at + len(piece)


class StreamParser:
    """Feeds a grammar with the bytes of one direction of a connection."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._step: ParsingStep | None = None
        self._pending = bytearray()
        self._advance(None)

    def feed(self, data: bytes) -> bytes:
        """Return the bytes with the hidden ones replaced. Those that are held are returned later, in their place."""
        out, self._pending = self._pending, bytearray()
        at = 0
        while at < len(data):
            step = self._step
            if step is None:
                out += HIDDEN * (len(data) - at)
                break
            at = step.take(data, at, out)
            if step.has_failed:
                self._step = None
            elif step.is_done:
                self._go_on(step, out)
        return bytes(out)

    def end(self) -> bytes:
        """Return the bytes that are still held, hidden: the connection has ended."""
        size = 0 if self._step is None else self._step.held()
        self._step = None
        return bytes(self._pending) + HIDDEN * size

    def _go_on(self, step: ParsingStep, out: bytearray) -> None:
        """Begin the next step that takes bytes."""
        held = step.held()
        current: ParsingStep | None = step
        while current is not None and current.is_done:
            self._advance(current.result)
            current = self._step
            if isinstance(current, Emit):
                out += current.data[:held]
                held = 0
        out += HIDDEN * held  # the grammar did not show a substitute

    def _advance(self, result: Any) -> None:
        try:
            self._step = self._grammar.send(result)
        except (StopIteration, Unreadable):
            self._step = None


class Fields:
    """The bytes of a frame: no field reaches beyond its end. :raises Unreadable: in a field that does."""

    def __init__(self, size: int) -> None:
        self.left = size

    def read(self, size: int) -> Generator[ParsingStep, Any, bytes]:
        """Show and return some bytes."""
        self._use(size)
        result: bytes = yield Read(size)
        return result

    def number(self, size: int) -> Generator[ParsingStep, Any, int]:
        """Show and return a number in network order."""
        data = yield from self.read(size)
        return int.from_bytes(data)

    def skip(self, size: int, *, hides: bool = False) -> Grammar:
        """Pass some bytes."""
        self._use(size)
        yield Skip(size, hides=hides)

    def hold(self, size: int) -> Generator[ParsingStep, Any, bytes]:
        """Return some bytes, without showing them."""
        self._use(size)
        result: bytes = yield Hold(size)
        return result

    def skip_rest(self, *, hides: bool = False) -> Grammar:
        """Pass the remaining bytes."""
        yield from self.skip(self.left, hides=hides)

    def _use(self, size: int) -> None:
        if size > self.left:
            raise Unreadable
        self.left -= size


def _end_of(data: bytes, at: int, stops: bytes) -> tuple[int, bool]:
    """Return the place after the first stop from ``at`` on, and whether there is one."""
    places = [place for stop in stops if (place := data.find(stop, at)) >= 0]
    return (min(places) + 1, True) if places else (len(data), False)


def _mixed(data: bytes, key: bytes) -> bytes:
    """Apply the mask of a WebSocket frame, or remove it (RFC 6455, 5.3)."""
    if not key:
        return data
    long = (key * (len(data) // 4 + 1))[: len(data)]
    return (int.from_bytes(data) ^ int.from_bytes(long)).to_bytes(len(data))
