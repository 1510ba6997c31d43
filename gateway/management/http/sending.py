"""Answers of any length, made while they are sent: a little in each turn, and no more than the client takes."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from twisted.internet.task import Cooperator

from gateway.management.http.errors import HttpError
from gateway.management.web.request import Headers, Request

#: What is put together before it is sent. Small enough that nobody notices the write (0.1 ms).
PIECE_SIZE: Final = 64 * 1024


class Sending:
    """One answer under way: takes ``pieces`` until there are no more, and pauses while the client takes nothing.

    A piece that is empty only ends a step of the work. The head is sent with the first bytes: until then the work may
    fail with an answer of its own, which ``failed`` gives. ``size`` is known in advance or not. ``close`` is called at
    the end, whichever it is. With ``when_durable`` the answer ends when a crash would not undo what the work did.
    """

    def __init__(
        self,
        request: Request,
        pieces: Iterator[bytes | None],
        *,
        headers: Headers,
        size: int | None,
        touch: Callable[[], None],
        failed: Callable[[Exception], None],
        close: Callable[[], None],
        when_durable: Callable[[Callable[[], None]], None] | None = None,
    ) -> None:
        self._request = request
        self._pieces = pieces
        self._headers = headers
        self._size = size
        self._touch = touch
        self._failed = failed
        self._close = close
        self._when_durable = when_durable
        self._buffer: list[bytes] = []
        self._buffered = 0
        self._task: Any = None

    def begin(self, cooperator: Cooperator) -> None:
        """Make and send the first piece, and the others in turns to come."""
        self._task = cooperator.cooperate(self._steps())
        self._request.flow = self
        self._request.when_lost(self._stop)

    def pause(self) -> None:
        """The client does not keep up."""
        if self._task is not None:
            self._task.pause()

    def resume(self) -> None:
        """The client took what there was."""
        if self._task is not None:
            self._task.resume()

    def _steps(self) -> Iterator[None]:
        try:
            for piece in self._pieces:
                self._touch()
                if piece:
                    self._buffer.append(piece)
                    self._buffered += len(piece)
                    if self._buffered >= PIECE_SIZE:
                        self._flush()
                yield
            self._end()
        except Exception as error:  # whatever it is, this request alone fails
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
            self._failed(error)

    def _stop(self) -> None:
        """The client is gone."""
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
