"""Streamed responses: generated while they are sent, in small steps and with flow control."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.task import Cooperator

from gateway.management.http.errors import HttpError
from gateway.management.web.request import Headers, Request

#: Bytes collected before they are sent: small enough that a write delays others by 0.1 ms only.
PIECE_SIZE: Final = 64 * 1024


class ResponseStream:
    """One response being sent: takes ``pieces`` until there are no more, and pauses while the client does not read.

    An empty piece only ends a step, and a deferred is waited for. The head is sent with the first bytes: until then the
    work may fail, and ``on_error`` sends the error. ``size`` is ``None`` if unknown. ``close`` is always called at the
    end. With ``when_durable`` the response ends when the changes are durable.
    """

    def __init__(
        self,
        request: Request,
        pieces: "Iterator[bytes | Deferred[None] | None]",
        *,
        headers: Headers,
        size: int | None,
        on_step: Callable[[], None],
        on_error: Callable[[Exception], None],
        close: Callable[[], None],
        when_durable: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self._request = request
        self._pieces = pieces
        self._headers = headers
        self._size = size
        self._on_step = on_step
        self._on_error = on_error
        self._close = close
        self._when_durable = when_durable
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._task: Any = None

    def begin(self, cooperator: Cooperator) -> None:
        """Start generating and sending pieces."""
        self._task = cooperator.cooperate(self._steps())
        self._request.flow = self
        self._request.when_lost(self._stop)

    def pause(self) -> None:
        """Pause: the client does not read fast enough."""
        if self._task is not None:
            self._task.pause()

    def resume(self) -> None:
        """Resume: the client has read what was sent."""
        if self._task is not None:
            self._task.resume()

    def _steps(self) -> "Iterator[Deferred[None] | None]":
        try:
            for piece in self._pieces:
                self._on_step()
                if isinstance(piece, Deferred):
                    self._flush()
                    yield piece
                    continue
                if piece:
                    self._buffer.append(piece)
                    self._buffered += len(piece)
                    if self._buffered >= PIECE_SIZE:
                        self._flush()
                yield None
            self._end()
        except Exception as error:  # any error fails only this request
            self._fail(error)
        finally:
            self._finish()

    def _flush(self) -> None:
        if not self._request.is_answered:
            size: Headers = [] if self._size is None else [(b"Content-Length", b"%d" % self._size)]
            self._request.begin_answer(200, [*self._headers, *size])
        data, self._buffer, self._buffered = b"".join(self._buffer), [], 0
        self._request.write(data)

    def _end(self) -> None:
        self._task = None
        if self._when_durable is None:
            self._complete()
        else:
            self._when_durable(self._complete)

    def _complete(self) -> None:
        if not self._request.is_answered and self._size is None:
            self._size = self._buffered
        self._flush()
        self._request.end_answer()

    def _fail(self, error: Exception) -> None:
        self._task = None
        if self._request.is_answered:
            self._request.abort()
        if not self._request.is_answered or not isinstance(error, HttpError | OSError | EOFError):
            self._on_error(error)

    def _stop(self) -> None:
        """Stop: the connection is lost."""
        task, self._task = self._task, None
        if task is not None:
            task.stop()
        self._finish()

    def _finish(self) -> None:
        close, self._close = self._close, lambda: None
        generator = getattr(self._pieces, "close", None)
        if generator is not None:
            generator()
        close()
