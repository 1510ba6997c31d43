"""The parts of the file ``load_definitions`` that belong to other cells, delivered to their leaders."""

from collections.abc import Generator, Mapping
from json import dumps
from typing import Any, Final

from twisted.internet.defer import Deferred

from gateway.access import Principal
from gateway.kernel.clock import Clock
from gateway.kernel.errors import GatewayError
from gateway.logs import StructuredLog
from gateway.management.cells.asking import asked, awaited
from gateway.management.cells.cell_answer import CellQuestion
from gateway.management.cells.cells import Cells
from gateway.management.cells.definitions import split
from gateway.management.cells.definitions_import import IMPORT, placing
from gateway.management.http.errors import HttpError

_log: Final = StructuredLog("cluster")

#: The pause before a leader that did not take its part is asked again, in seconds.
_RETRY_S: Final = 3.0

#: Answers from this status on say that the leader could not take its part now; those below that it refuses it.
_LATER: Final = 500

#: The file is applied in the name of no user.
_NO_USER: Final = Principal("", frozenset({"administrator"}))


class DefinitionsDelivery:
    """Makes the virtual hosts of a ``document`` in their ``planned`` cells, and lets these apply their parts.

    A leader that is not there is asked again; one that refuses its part is not, and the log says so.
    """

    def __init__(
        self,
        cells: Cells,
        document: Any,  # Any: JSON
        planned: Mapping[str, int],
        default_vhost: str,
        clock: Clock,
    ) -> None:
        self._cells = cells
        self._planned = planned
        self._document = document
        self._default_vhost = default_vhost
        self._clock = clock
        self._taken: set[int] = set()
        self._is_closed = False

    def close(self) -> None:
        """Deliver nothing more."""
        self._is_closed = True

    async def deliver(self) -> None:
        """Deliver all parts."""
        while not self._is_closed:
            try:
                await self._run(self._delivering())
            except (HttpError, GatewayError) as error:
                reason = error.reason if isinstance(error, HttpError) else str(error)
                _log.warning("definitions wait for another cell", reason=reason)
                await self._pause(_RETRY_S)
            else:
                return

    def _delivering(self) -> "Generator[Deferred[None] | None, None, None]":
        own, known = self._cells.own, self._cells.cell_of
        elsewhere = {name: cell for name, cell in self._planned.items() if cell != own and known(name) is None}
        yield from placing(self._cells, elsewhere, [])
        parts = yield from split(self._cells, self._document, {}, self._default_vhost)
        for cell, part in parts.others.items():
            if cell not in self._taken:
                yield from self._delivered(cell, dumps(part).encode())
                self._taken.add(cell)

    def _delivered(self, cell: int, content: bytes) -> "Generator[Deferred[None] | None, None, None]":
        headers = [("content-type", "application/json")]
        try:
            yield from awaited(asked(self._cells, cell, CellQuestion("POST", IMPORT, _NO_USER, headers, content)))
        except HttpError as error:
            if error.status >= _LATER:
                raise
            _log.error("a cell refuses its part of load_definitions", cell=cell, reason=str(error.reason))
        else:
            _log.info("definitions applied by another cell", cell=cell)

    async def _run(self, steps: "Generator[Deferred[None] | None, None, None]") -> None:
        """Run steps, with turns of the reactor between them."""
        for waiting in steps:
            if self._is_closed:
                return
            await (self._pause(0) if waiting is None else waiting)

    def _pause(self, seconds: float) -> "Deferred[None]":
        paused: Deferred[None] = Deferred()
        self._clock.call_later(seconds, lambda: paused.callback(None))
        return paused
