"""Answers too large for one write: bytes that are sent in pieces, as fast as the client takes them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import RawIOBase
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from twisted.internet.defer import Deferred, succeed

#: What is written in one turn: large enough for speed, small enough that others do not notice (0.1 ms).
PIECE_SIZE: Final = 128 * 1024

#: How long a client may take nothing, in seconds. One that hangs would keep others from their turn.
PATIENCE_S: Final = 60.0


class Extent(NamedTuple):
    """A part of a file, in bytes."""

    position: int
    size: int


@dataclass(frozen=True, slots=True)
class Download:
    """An answer with status 200. ``pieces`` are read while they are sent; ``close`` is called at the end."""

    headers: Mapping[str, str]
    size: int
    pieces: Iterator[bytes]
    close: Callable[[], None] = lambda: None

    @classmethod
    def of_bytes(cls, content: bytes, headers: Mapping[str, str]) -> Self:
        """Return the answer that is these bytes."""
        return cls(headers, len(content), _cut(memoryview(content)))

    @classmethod
    def of_file(cls, path: Path, extents: Sequence[Extent], end: bytes, headers: Mapping[str, str]) -> Self | None:
        """Return the answer of parts of a file with ``end`` behind them; ``None`` when it is not there (any more)."""
        try:
            file = path.open("rb", buffering=0)
        except OSError:
            return None
        size = sum(extent.size for extent in extents) + len(end)
        return cls(headers, size, _read(file, extents, end), file.close)

    def closing(self, call: Callable[[], None]) -> Self:
        """Return the same answer that makes one more call when it is closed."""

        def close() -> None:
            self.close()
            call()

        return replace(self, close=close)


def _cut(content: memoryview) -> Iterator[bytes]:
    for position in range(0, len(content), PIECE_SIZE):
        yield bytes(content[position : position + PIECE_SIZE])


def _read(file: RawIOBase, extents: Sequence[Extent], end: bytes) -> Iterator[bytes]:
    for position, size in extents:
        file.seek(position)
        left = size
        while left:
            piece = file.read(min(left, PIECE_SIZE))
            if not piece:
                raise EOFError("a file is shorter than its index says")
            left -= len(piece)
            yield piece
    yield end


class Sending:
    """One download under way, a push producer of Twisted: a piece each turn, while the client takes them.

    ``done`` fires with nothing more to write once everything was sent. If the client goes, it is cancelled.
    """

    def __init__(self, request: Any, download: Download, call_later: Callable[..., Any]) -> None:
        self.done: Deferred[bytes] = Deferred(canceller=lambda _: self.stopProducing())
        self._request = request
        self._download = download
        self._call_later = call_later
        self._timer: Any = None  # runs while the client takes nothing
        self._is_scheduled = False
        self._is_over = False

    def begin(self) -> "Deferred[bytes]":
        """Send the first piece; the head alone, if that is all that was asked for."""
        if self._request.method == b"HEAD" or self._request.channel is None:
            self._download.close()
            return succeed(b"")
        self._request.registerProducer(self, True)
        self._send()
        return self.done

    def pauseProducing(self) -> None:
        """The client does not keep up."""
        if self._timer is None and not self._is_over:
            self._timer = self._call_later(PATIENCE_S, self._give_up)

    def resumeProducing(self) -> None:
        """The client took what there was."""
        self._stop_timer()
        self._schedule()

    def stopProducing(self) -> None:
        """The client is gone."""
        if not self._is_over:
            self._close()

    def _schedule(self) -> None:
        if not self._is_scheduled and not self._is_over:
            self._is_scheduled = True
            self._call_later(0, self._send)

    def _send(self) -> None:
        self._is_scheduled = False
        if self._is_over or self._timer is not None:
            return
        try:
            piece = next(self._download.pieces, None)
        except (OSError, EOFError):  # too late for another answer: a connection that breaks is one
            self._abort()
            return
        if piece is None:
            self._end()
            self.done.callback(b"")
        else:
            self._request.write(piece)
            self._schedule()

    def _end(self) -> None:
        self._close()
        self._request.unregisterProducer()

    def _give_up(self) -> None:
        self._timer = None
        self._abort()

    def _abort(self) -> None:
        self._close()
        self._request.transport.abortConnection()

    def _close(self) -> None:
        self._is_over = True
        self._stop_timer()
        self._download.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
