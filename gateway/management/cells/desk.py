"""The requests of clients in a cluster with several cells: some are answered by the leaders of other cells."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from twisted.internet.defer import DeferredList
from twisted.python.failure import Failure

from gateway.access import Principal
from gateway.management.cells.asking import asked, question_of, target_of
from gateway.management.cells.cell_answer import unavailable
from gateway.management.cells.cells import Cells, PlacedVhost
from gateway.management.cells.checking import joined_check
from gateway.management.cells.definitions import joined_export
from gateway.management.cells.joining import joined_list, joined_listing, joined_overview
from gateway.management.cells.passed_request import PassedRequest
from gateway.management.cells.routing import (
    ANYWHERE,
    EVERYWHERE,
    LISTS,
    MERGED,
    OF_ALL,
    OF_SERVICE,
    cell_for,
    made_vhost,
    named_cell,
    put_vhost,
)
from gateway.management.cells.vhost_making import place_vhost
from gateway.management.context import ApiContext
from gateway.management.http.bodies import parse_object
from gateway.management.http.errors import HttpError, bad_request, busy
from gateway.management.http.listing import Listing
from gateway.management.http.routes import Endpoint, LongTask, Reply, Streamed
from gateway.management.web.request import Request

#: The listener of the metrics.
_METRICS: Final = "prometheus"

_NOT_FOUND: Final = 404

_DEFINITIONS: Final = ("/definitions", "/all-configuration")


class CellDesk:
    """Asks other ``cells`` about the requests of one listener. The leader of the first cell answers all clients.

    ``refuse`` answers a request with an error; ``when_durable`` calls back once all changes so far are stored, and
    known to the other leaders. ``is_api``: the listener is that of the HTTP API, else that of the metrics, which
    answers for another cell if the query names one.
    """

    def __init__(
        self,
        context: ApiContext,
        cells: Cells,
        is_api: bool,
        refuse: Callable[[Request, Exception], None],
        when_durable: Callable[[Callable[[], None]], None],
    ) -> None:
        self._context = context
        self._cells = cells
        self._is_api = is_api
        self._refuse = refuse
        self._when_durable = when_durable

    @property
    def is_asked_by_leader(self) -> bool:
        """Whether requests come from the leader of the first cell, which has authenticated their users."""
        return self._is_api and not self._cells.is_first

    def answer(
        self,
        route: Endpoint,
        request: Request,
        names: Mapping[str, str],
        principal: Principal,
        perform: Callable[[], None],
    ) -> None:
        """Let the cell answer a request that has what it is about; ``perform`` lets this one do so.

        :raises HttpError: if the request cannot be passed on.
        """
        if not self._cells.is_first:
            perform()
        elif not self._is_api:
            self._answer_metrics(request, principal, perform)
        elif (name := made_vhost(self._cells, route.method, route.path, names)) is not None:
            self._make(name, request, principal, perform)
        elif (route.method, route.path) in EVERYWHERE:
            self._ask_all(request, principal, perform)
        elif (cell := cell_for(self._cells, route.path, names, request.query)) is not None:
            self._keep(put_vhost(route.method, route.path, names))
            self._pass_on(cell, request, principal)
        else:
            perform()

    def _make(self, name: str, request: Request, principal: Principal, perform: Callable[[], None]) -> None:
        """Choose the cell of a new virtual host, and let its leader make it."""
        cell = self._wanted(request) or self._cells.emptiest()
        if cell == self._cells.own:
            perform()  # its record follows: one without a record is in the first cell
            return

        def placed(place: PlacedVhost) -> None:
            def refused() -> None:
                if place.is_new:
                    self._cells.forget_placed(name)

            if place.cell == self._cells.own:  # it was made here meanwhile
                perform()
            else:
                self._pass_on(place.cell, request, principal, refused=refused)

        placing = place_vhost(self._context, self._cells, name, cell, principal.name, placed)
        placing.addErrback(partial(self._failed, request))

    def _keep(self, vhost: str | None) -> None:
        """Keep the record of a virtual host that a request may make in another cell.

        The request that placed it may be refused there, and does not delete the record then.

        :raises HttpError: if that has happened just now.
        """
        if vhost is not None and not self._cells.keep_placed(vhost):
            raise busy(f"vhost '{vhost}' is being deleted, try again")

    def _wanted(self, request: Request) -> int | None:
        """Return the cell in which a client wants a new virtual host; ``None`` if it names none.

        :raises HttpError: if there is no such cell.
        """
        cell = parse_object(request.content).get("cell")
        if cell is None:
            return None
        if type(cell) is not int or cell not in (self._cells.own, *self._cells.others):
            raise bad_request(f"the cluster has no cell {cell}")
        return cell

    def _ask_all(self, request: Request, principal: Principal, perform: Callable[[], None]) -> None:
        """Let the other cells carry out a request too, then this one, which answers."""
        question, others = question_of(request, principal), self._cells.others
        asking = DeferredList([asked(self._cells, cell, question) for cell in others], consumeErrors=True)

        def answered(outcomes: Sequence[tuple[bool, object]]) -> None:
            silent = [cell for (has_answered, _), cell in zip(outcomes, others, strict=True) if not has_answered]
            if silent:
                raise unavailable(silent[0], "it carried out nothing")
            perform()

        asking.addCallback(answered).addErrback(partial(self._failed, request))

    def _answer_metrics(self, request: Request, principal: Principal, perform: Callable[[], None]) -> None:
        """Answer with the metrics of the cell that the query names, by default this one."""
        named = named_cell(self._cells, request.query.get("cell", str(self._cells.own)))
        if named == self._cells.own:
            perform()
            return
        passed = PassedRequest(request, named, partial(self._refuse, request))
        query = {field: value for field, value in request.query.items() if field != "cell"}
        target = target_of(request.path, query)
        question = question_of(request, principal, target=target, listener=_METRICS)
        passed.begin(self._cells.ask(named, question, passed))

    def _pass_on(
        self,
        cell: int,
        request: Request,
        principal: Principal,
        others: Iterable[int] = (),
        refused: Callable[[], None] = lambda: None,
    ) -> None:
        """Let the leader of another cell answer, once it knows of the changes of users before this request.

        If it does not have what the request names, the ``others`` are asked.
        """
        further = list(others)

        def missing() -> None:
            self._pass_on(further[0], request, principal, further[1:])

        passed = PassedRequest(request, cell, partial(self._refuse, request), missing if further else None, refused)

        def ask() -> None:
            if request.is_lost:
                return
            try:
                passed.begin(self._cells.ask(cell, question_of(request, principal), passed))
            except HttpError as error:
                self._refuse(request, error)

        self._context.touch()
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
        if not self._cells.is_first or not self._is_api or "cell" in query:
            return result
        if isinstance(result, Listing) and route.path in MERGED:
            return LongTask(joined_listing(result, self._cells, request, principal, query))
        if isinstance(result, list) and route.path in LISTS:
            return LongTask(joined_list(result, self._cells, request, principal))
        if isinstance(result, Reply) and route.path in OF_ALL | OF_SERVICE:
            reactor, needs_all = self._context.reactor, route.path in OF_ALL
            return LongTask(joined_check(result, self._cells, request, principal, reactor, needs_all=needs_all))
        if isinstance(result, dict) and route.path == "/overview":
            return LongTask(joined_overview(result, self._cells, request, principal))
        if isinstance(result, Streamed) and route.path in _DEFINITIONS:
            return LongTask(joined_export(iter(result.pieces), self._cells, request, principal))
        return result

    def _failed(self, request: Request, failure: Failure) -> None:
        assert isinstance(failure.value, Exception)
        self._refuse(request, failure.value)
