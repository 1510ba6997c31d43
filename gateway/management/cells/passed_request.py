"""A request that the leader of another cell answers: its answer passes as it comes."""

from collections.abc import Callable, Sequence
from typing import Final

from gateway.management.cells.cell_answer import CellFlow, unavailable
from gateway.management.web.request import Request

#: Headers that concern one connection, or that this listener sets.
_OWN: Final = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"server", b"date"})

_REFUSED: Final = 400
_NOT_FOUND: Final = 404
_FAILED: Final = 500


class PassedRequest:
    """Passes the answer of a ``cell`` to the client of a ``request``. ``refuse`` sends an error instead.

    ``missing`` is called instead of passing the answer on if the cell does not have what the request names, and
    ``refused`` before any refusal.
    """

    def __init__(
        self,
        request: Request,
        cell: int,
        refuse: Callable[[Exception], None],
        missing: Callable[[], None] | None = None,
        refused: Callable[[], None] = lambda: None,
    ) -> None:
        self._refused = refused
        self._missing = missing
        self._is_missing = False
        self._request = request
        self._cell = cell
        self._refuse = refuse

    def begin(self, flow: CellFlow) -> None:
        """Take what stops and ends the answer, because the client reads slowly, or is gone."""
        self._request.flow = flow
        self._request.when_lost(flow.cancel)

    def begun(self, status: int, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Send the head."""
        if status == _NOT_FOUND and self._missing is not None:
            self._is_missing = True
            return
        if _REFUSED <= status < _FAILED:
            self._refused()
        kept = [(name, value) for name, value in headers if name.lower() not in _OWN]
        self._request.begin_answer(status, kept)

    def piece(self, data: bytes) -> None:
        """Send a piece of the body."""
        if not self._is_missing:
            self._request.write(data)

    def ended(self) -> None:
        """End the answer."""
        if self._missing is not None and self._is_missing:
            self._missing()
        else:
            self._request.end_answer()

    def failed(self, reason: str) -> None:
        """Refuse the request, or end the connection in the middle of the answer."""
        if self._request.is_answered:
            self._request.abort()
        else:
            self._refuse(unavailable(self._cell, reason))
