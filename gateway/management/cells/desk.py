"""The requests of clients in a cluster with several cells: some are answered by the leaders of other cells."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from twisted.python.failure import Failure

from gateway.access import Principal
from gateway.management.cells.asking import question_of
from gateway.management.cells.cells import Cells
from gateway.management.cells.joining import joined_listing, joined_overview
from gateway.management.cells.passed_request import PassedRequest
from gateway.management.cells.routing import ANYWHERE, MERGED, cell_for, made_vhost
from gateway.management.cells.vhost_making import place_vhost
from gateway.management.context import ApiContext
from gateway.management.http.errors import HttpError
from gateway.management.http.listing import Listing
from gateway.management.http.routes import Endpoint, LongTask
from gateway.management.web.request import Request

_NOT_FOUND = 404


class CellDesk:
    """Asks other ``cells`` about the requests of one listener. The leader of the first cell answers all clients.

    ``refuse`` answers a request with an error; ``when_durable`` calls back once all changes so far are stored, and
    known to the other leaders.
    """

    def __init__(
        self,
        context: ApiContext,
        cells: Cells,
        refuse: Callable[[Request, Exception], None],
        when_durable: Callable[[Callable[[], None]], None],
    ) -> None:
        self._context = context
        self._cells = cells
        self._refuse = refuse
        self._when_durable = when_durable

    def takes(
        self,
        route: Endpoint,
        request: Request,
        names: Mapping[str, str],
        principal: Principal,
        perform: Callable[[], None],
    ) -> bool:
        """Return whether another cell answers a request, and ask it; ``perform`` lets this cell answer it after all."""
        if not self._cells.is_first:
            return False
        if (name := made_vhost(self._cells, route.method, route.path, names)) is not None:
            self._make(name, request, principal, perform)
            return True
        cell = cell_for(self._cells, route.path, names)
        if cell is not None:
            self._pass_on(cell, request, principal)
        return cell is not None

    def _make(self, name: str, request: Request, principal: Principal, perform: Callable[[], None]) -> None:
        """Choose the cell of a new virtual host, and let its leader make it."""

        def placed(cell: int) -> None:
            if cell == self._cells.own:
                perform()
            else:
                self._pass_on(cell, request, principal)

        placing = place_vhost(self._context, self._cells, name, principal.name, placed)
        placing.addErrback(partial(self._failed, request))

    def _pass_on(self, cell: int, request: Request, principal: Principal, others: Iterable[int] = ()) -> None:
        """Let the leader of another cell answer, once it knows of the changes of users before this request.

        If it does not have what the request names, the ``others`` are asked.
        """
        further = list(others)

        def missing() -> None:
            self._pass_on(further[0], request, principal, further[1:])

        passed = PassedRequest(request, cell, partial(self._refuse, request), missing if further else None)

        def ask() -> None:
            if request.is_lost:
                return
            try:
                passed.begin(self._cells.ask(cell, question_of(request, principal), passed))
            except HttpError as error:
                self._refuse(request, error)

        self._when_durable(ask)

    def tries_others(self, route: Endpoint, request: Request, principal: Principal, error: Exception) -> bool:
        """Return whether the other cells are asked for what this one does not have, and ask them."""
        is_missing = isinstance(error, HttpError) and error.status == _NOT_FOUND
        if not is_missing or route.path not in ANYWHERE or not self._cells.is_first:
            return False
        first, *others = self._cells.others
        self._pass_on(first, request, principal, others)
        return True

    def joined(
        self, route: Endpoint, request: Request, principal: Principal, result: object, query: Mapping[str, str]
    ) -> object:
        """Return a result with what the other cells have, if it is about all of them."""
        if not self._cells.is_first:
            return result
        if isinstance(result, Listing) and route.path in MERGED:
            return LongTask(joined_listing(result, self._cells, request, principal, query))
        if isinstance(result, dict) and route.path == "/overview":
            return LongTask(joined_overview(result, self._cells, request, principal))
        return result

    def _failed(self, request: Request, failure: Failure) -> None:
        assert isinstance(failure.value, Exception)
        self._refuse(request, failure.value)
