"""Requests to the leaders of other cells of a cluster, and their answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from gateway.access import Principal
from gateway.management.http.errors import HttpError, busy


@dataclass(frozen=True, slots=True)
class CellQuestion:
    """A request of a ``user``, as the leader of another cell gets it. ``target`` is the path with the query.

    ``listener`` is the one that answers. ``authorization`` is the header of the client if its login cannot be told
    otherwise; empty else.
    """

    method: str
    target: str
    user: Principal
    headers: Sequence[tuple[str, str]] = ()
    content: bytes = b""
    peer_host: str = ""
    is_secure: bool = False
    authorization: str = field(default="", repr=False)
    listener: str = "management"


class CellAnswer(Protocol):
    """Takes the answer of a leader, in pieces."""

    def begun(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Take the status and the headers."""
        ...

    def piece(self, data: bytes) -> None:
        """Take a piece of the body."""
        ...

    def ended(self) -> None:
        """Note the end of the body."""
        ...

    def failed(self, reason: str) -> None:
        """Note that there is no answer, or only a part of one."""
        ...


class CellFlow(Protocol):
    """The question while it is asked."""

    def pause(self) -> None:
        """Take no more pieces for now."""
        ...

    def resume(self) -> None:
        """Take more pieces."""
        ...

    def cancel(self) -> None:
        """Take nothing more."""
        ...


class NoFlow:
    """The flow of a question that is not asked."""

    def pause(self) -> None:
        """Do nothing."""

    def resume(self) -> None:
        """Do nothing."""

    def cancel(self) -> None:
        """Do nothing."""


NO_FLOW: Final = NoFlow()


class WholeAnswer:
    """Collects an answer: ``done`` is called with the status and the body, or with an error.

    A body of more than ``most_bytes`` is an error.
    """

    def __init__(
        self, cell: int, done: Callable[[int, bytes], None], failed: Callable[[HttpError], None], most: int
    ) -> None:
        self._cell = cell
        self._done = done
        self._failed: Callable[[HttpError], None] | None = failed
        self._most = most
        self._status = 0
        self._pieces: list[bytes] = []
        self._size = 0

    def begun(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Note the status."""
        self._status = status

    def piece(self, data: bytes) -> None:
        """Keep a piece."""
        self._size += len(data)
        if self._size > self._most:
            self.failed(f"its answer is larger than {self._most} bytes")
        else:
            self._pieces.append(data)

    def ended(self) -> None:
        """Report the answer."""
        if self._failed is not None:
            self._failed = None
            self._done(self._status, b"".join(self._pieces))

    def failed(self, reason: str) -> None:
        """Report that there is none."""
        failed, self._failed = self._failed, None
        self._pieces.clear()
        if failed is not None:
            failed(unavailable(self._cell, reason))


def unavailable(cell: int, reason: str) -> HttpError:
    """Return the error for a cell whose leader does not answer."""
    return busy(f"cell {cell} of the cluster does not answer: {reason}")
