"""The management API: it authenticates requests, calls resources and sends their results.

A request is authorised before its body is received, and a change is answered once it is durable. Long work shares the
reactor: it runs in slices of a few milliseconds, and long responses are generated as fast as the client reads them.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial
from traceback import format_exception
from typing import Any, Final

from twisted.internet.defer import CancelledError, Deferred, DeferredLock, maybeDeferred, succeed
from twisted.internet.task import deferLater
from twisted.python.failure import Failure
from werkzeug.exceptions import HTTPException
from werkzeug.routing import BaseConverter, Map, Rule

from gateway.access import PermissionUnknown, Principal
from gateway.kernel.acting import NamedUser
from gateway.kernel.clock import PAUSE_S
from gateway.kernel.errors import GatewayError
from gateway.logs import StructuredLog
from gateway.management.auditing.recorder import perform
from gateway.management.cells.desk import CellDesk
from gateway.management.context import ApiContext
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.authenticating import asks_for_login, authenticate, principal_of_session
from gateway.management.http.call import Call
from gateway.management.http.cross_origin import SECURITY_HEADERS, require_no_form
from gateway.management.http.downloads import Download
from gateway.management.http.errors import HttpError, busy, login_failed, missing, translated, without_challenge
from gateway.management.http.listing import Listing
from gateway.management.http.request_info import credentials_of, decoded, query_of, values_of
from gateway.management.http.response_stream import ResponseStream
from gateway.management.http.routes import Endpoint, LongTask, Pieces, Reply, Streamed
from gateway.management.resources.table import ROUTES
from gateway.management.ui.page_answers import PageAnswers
from gateway.management.views.json import encode
from gateway.management.web.factory import HttpFactory
from gateway.management.web.request import Headers, Request

_log: Final = StructuredLog("management")

PREFIX: Final = "/api"
_JSON: Final = b"application/json"

#: The time an authenticator may take, in seconds. Plugins may ask other services, which may never answer.
LOGIN_TIMEOUT_S: Final = 30.0


class MatchedRule(Rule):
    """A rule that only matches: the compiled builders of URLs, which take most of its time, are left out."""

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        return _build_nothing


def _build_nothing(*values: object) -> tuple[str, str]:
    raise NotImplementedError("no URL is built from a rule")


class ApiSite:
    """Answers the requests of one listener: the API and the web UI, or other ``routes`` without a ``prefix``."""

    def __init__(self, context: ApiContext, routes: Iterable[Endpoint] = ROUTES, prefix: str = PREFIX) -> None:
        self._context = context
        self._cross_origin_policy = context.cross_origin_policy
        self._long_task_lock = DeferredLock()
        self._routes: dict[str, dict[str, Endpoint]] = {}
        for route in routes:
            self._routes.setdefault(route.path, {})[route.method] = route
        self._pages = PageAnswers(context.addresses) if prefix else None
        cells, is_api = context.cells, bool(prefix)
        self._desk = None if cells is None else CellDesk(context, cells, is_api, self._refuse, self._when_durable)
        self._map = _url_map(prefix, tuple(self._routes))

    # Requests

    def begin(self, request: Request) -> None:
        """Authorise a request by its head; then receive its body."""
        self._run_guarded(request, partial(self._authorize, request))

    def _authorize(self, request: Request) -> None:
        self._cross_origin_policy.require_allowed_origin(request)
        if self._pages is not None and not _is_of_api(request.path):
            self._pages.answer(request)
            return
        routes, names = self._match_route(request.path)
        if request.method == "OPTIONS":
            allowed = _allowed(routes)
            cors = self._cross_origin_policy.preflight(request, allowed)
            self._write(request, Reply(200, headers={"Allow": allowed}), cors)
            return
        route = routes.get("GET" if request.method == "HEAD" else request.method)
        if route is None:
            raise HttpError(405, headers={"Allow": _allowed(routes)})
        require_no_form(request, route)
        if route.level is AccessLevel.PUBLIC:
            anonymous = Principal("", frozenset())
            self._take_body(request, route, partial(self._perform, route, request, names, anonymous))
            return
        if request.user is not None and self._desk is not None and self._desk.is_asked_by_leader:
            self._admit(route, request, names, request.user)
            return
        if (principal := principal_of_session(self._context, request)) is not None:
            self._admit(route, request, names, principal)
            return
        credentials = credentials_of(request)
        login = authenticate(self._context.login, credentials)
        request.when_lost(login.cancel)
        if not login.called:
            login.addTimeout(LOGIN_TIMEOUT_S, self._context.reactor, _refuse_late_login)
        login.addCallback(partial(self._logged_in, route, request, names, credentials.username))
        login.addErrback(partial(self._failed, request))

    def _logged_in(
        self, route: Endpoint, request: Request, names: Mapping[str, str], claimed: str, principal: Principal | None
    ) -> None:
        user = claimed if principal is None else principal.name
        self._context.broker.connections.count_login("http", principal is not None, user, request.peer_host)
        if principal is None:
            raise login_failed()
        self._admit(route, request, names, principal)

    def _admit(self, route: Endpoint, request: Request, names: Mapping[str, str], principal: Principal) -> None:
        """Receive the body of an authenticated request. :raises HttpError: if the user's tags do not suffice."""
        request.logged_in()
        if route.refine is not None:
            route = route.refine(self._context, names)
        if (refusal := route.level.refusal(principal.tags)) is not None:
            raise refusal
        self._take_body(request, route, partial(self._perform, route, request, names, principal))

    def _match_route(self, path: str) -> tuple[Mapping[str, Endpoint], Mapping[str, str]]:
        """Return the routes of a path and the names in it, still percent-encoded, so that ``%2F`` is part of a name."""
        try:
            endpoint, names = self._map.bind("gateway").match(path.rstrip("/") or "/")
        except HTTPException:
            raise missing() from None
        return self._routes[endpoint], names

    def _take_body(self, request: Request, route: Endpoint, complete: Callable[[], None]) -> None:
        limit = min(route.largest_body, self._context.http.max_body_size)
        request.take_body(limit, complete)

    def _perform(self, route: Endpoint, request: Request, names: Mapping[str, str], principal: Principal) -> None:
        """Call the resource of a request and send its result; or let the leader of another cell do so."""
        here = partial(self._perform_here, route, request, names, principal)
        if self._desk is None:
            here()
        else:
            self._run_guarded(request, partial(self._desk.answer, route, request, names, principal, here))

    def _perform_here(self, route: Endpoint, request: Request, names: Mapping[str, str], principal: Principal) -> None:
        call = partial(self._call_resource, route, request, names, principal)
        done: Deferred[object] = self._perform_when_permitted(call)
        request.when_lost(done.cancel)
        done.addCallback(partial(self._respond, request))
        done.addErrback(partial(self._not_performed, route, request, principal))

    def _not_performed(self, route: Endpoint, request: Request, principal: Principal, failure: Failure) -> None:
        error = failure.value
        desk = self._desk
        if desk is None or not isinstance(error, Exception) or not desk.tries_others(route, request, principal, error):
            self._failed(request, failure)

    def _perform_when_permitted(self, call: Callable[[], object]) -> "Deferred[object]":
        """Call a resource; call it again once a permission is known that another server is asked for."""

        def wait(failure: Failure) -> "Deferred[object] | Failure":
            if not isinstance(failure.value, PermissionUnknown):
                return failure
            known: Deferred[object] = Deferred(canceller=lambda _: None)
            failure.value.when_known(lambda: None if known.called else known.callback(None))
            return known.addCallback(lambda _: self._perform_when_permitted(call))

        return maybeDeferred(call).addErrback(wait)

    def _call_resource(
        self, route: Endpoint, request: Request, names: Mapping[str, str], principal: Principal
    ) -> object:
        call = Call(
            self._context,
            principal,
            query_of(request),
            request.content,
            request.headers,
            request.peer_host,
            is_secure=request.is_secure,
        )
        call.values = partial(values_of, request)
        acting, user = self._context.broker.clock.background.acting, NamedUser(principal.name)
        try:
            with acting.being(user):
                result = perform(route, call, {name: decoded(value) for name, value in names.items()})
            if self._desk is not None:
                result = self._desk.joined(route, request, principal, result, call.query)
            if isinstance(result, Listing):
                return Streamed(result.pieces(call.query))
            return self._run_long_task(request, result, user) if isinstance(result, LongTask) else result
        finally:
            self._context.touch()

    def _run_long_task(self, request: Request, task: LongTask, user: NamedUser) -> "Deferred[object]":
        """Run a long task of a user. A running task continues if the client disconnects; a waiting one is dropped."""
        acting = self._context.broker.clock.background.acting
        steps = TaskSteps(task.steps, self._context.touch, self._backpressure, lambda: acting.being(user))
        answered: Deferred[object] = Deferred(canceller=lambda _: None)

        def begin() -> "Deferred[Any]":
            return succeed(None) if request.is_lost else self._context.slices.coiterate(iter(steps))

        def ended(outcome: object) -> None:
            if not answered.called:
                answered.callback(outcome if isinstance(outcome, Failure) else steps.result)

        done: Deferred[Any] = self._long_task_lock.run(begin) if task.is_exclusive else begin()
        done.addBoth(ended)
        return answered

    def _backpressure(self) -> "Deferred[None] | None":
        """Return a deferred that delays a long task; ``None`` while the store keeps up.

        Without it, the records of an import would block every publisher.
        """
        context = self._context
        return deferLater(context.reactor, PAUSE_S) if context.broker.journal.delays_long_work() else None

    # Responses

    def _respond(self, request: Request, result: object) -> None:
        if isinstance(result, Download):
            self._download(request, result)
            return
        if isinstance(result, Streamed):
            headers = _encoded({"Content-Type": result.content_type, **result.headers})
            self._stream(request, result.pieces, headers, None)
            return
        if not isinstance(result, Reply):
            result = Reply(204) if result is None else Reply(200, result)
        if request.method in ("GET", "HEAD"):
            self._write(request, result)
        else:
            self._context.touch()  # a change that was made in no turn of a client
            self._when_durable(partial(self._write, request, result))

    def _when_durable(self, answer: Callable[[], None]) -> None:
        """Answer a change once it is durable."""
        journal, cells = self._context.broker.journal, self._context.cells
        known = answer if cells is None else partial(cells.when_shared, answer)
        journal.when_durable(journal.pending_lsn, known)

    def _download(self, request: Request, download: Download) -> None:
        headers = _encoded(download.headers)
        if request.is_lost or request.method == "HEAD":
            download.close()
            size = (b"Content-Length", b"%d" % download.size)
            request.begin_answer(200, [*self._headers(request, headers), size])
            request.end_answer()
        else:
            self._stream(request, download.pieces, headers, download.size, download.close)

    def _stream(
        self,
        request: Request,
        pieces: Pieces | Iterator[bytes],
        headers: Headers,
        size: int | None,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        ResponseStream(
            request,
            pieces,
            headers=self._headers(request, headers),
            size=size,
            on_step=self._context.touch,
            on_error=lambda error: self._refuse(request, error),
            close=close,
            when_durable=None if request.method in ("GET", "HEAD") else self._when_durable,
        ).begin(self._context.slices)

    def _run_guarded(self, request: Request, step: Callable[[], None]) -> None:
        """Run a step; an error becomes the response."""
        try:
            step()
        except Exception as error:  # an error of one request must not affect others
            self._refuse(request, error)

    def _failed(self, request: Request, failure: Failure) -> None:
        if not isinstance(failure.value, CancelledError):  # cancelled: the client has disconnected
            assert isinstance(failure.value, Exception)
            self._refuse(request, failure.value)

    def _refuse(self, request: Request, error: Exception) -> None:
        if isinstance(error, GatewayError):
            error = translated(error)
        if not isinstance(error, HttpError):
            trace = "".join(format_exception(error))
            path = request.path.partition("/hash_password/")[0]  # the rest of the path is a password
            _log.error("internal error", method=request.method, path=path, error=trace)
            error = HttpError(500, "internal_error", "internal error, see the log of the gateway")
        if not request.is_answered:
            headers = error.headers if asks_for_login(request.headers) else without_challenge(error.headers)
            self._write(request, Reply(error.status, error.fields, headers))

    def _write(self, request: Request, reply: Reply, further: Headers | None = None) -> None:
        content = reply.content or b""
        if reply.fields is not None:
            content = encode(reply.fields)
        headers = self._common_headers(request) if further is None else [*SECURITY_HEADERS, *further]
        headers += [(name.encode(), value.encode("latin-1", "replace")) for name, value in reply.headers.items()]
        if reply.fields is not None:
            headers.append((b"Content-Type", _JSON))
        request.answer(reply.status, headers, content)

    def _headers(self, request: Request, own: Headers) -> Headers:
        """Return the headers of a response: its own, and the common ones that it does not replace."""
        named = {name.lower() for name, _ in own}
        return [*(each for each in self._common_headers(request) if each[0].lower() not in named), *own]

    def _common_headers(self, request: Request) -> Headers:
        """Return the headers of every response, which forbid caching."""
        return [(b"Cache-Control", b"no-cache, no-store"), *SECURITY_HEADERS, *self._cross_origin_policy.cors(request)]


class TaskSteps:
    """The steps of a long task as an iterator; ``result`` is set after the last.

    A step may yield a deferred to wait for. ``touch`` is called with each step, so that every slice ends in a turn.
    ``backpressure`` returns a deferred that delays the task, or ``None``. Each step runs within ``context()``.
    """

    def __init__(
        self,
        steps: "Generator[Deferred[None] | None, None, object]",
        touch: Any,
        backpressure: "Callable[[], Deferred[None] | None]" = lambda: None,
        context: "Callable[[], AbstractContextManager[None]]" = nullcontext,
    ) -> None:
        self.result: object = None
        self._steps = steps
        self._touch = touch
        self._backpressure = backpressure
        self._context = context

    def __iter__(self) -> "Iterator[Deferred[None] | None]":
        while True:
            try:
                with self._context():
                    awaited = next(self._steps)
            except StopIteration as end:
                self.result = end.value
                return
            self._touch()
            yield awaited or self._backpressure()


class PathSegment(BaseConverter):
    """A segment of a path, still percent-encoded; it may be empty, as the default exchange's name."""

    regex = "[^/]*"


def management_site(context: ApiContext) -> HttpFactory:
    """Return the factory of the API's listener."""
    return HttpFactory(ApiSite(context), context.http, context.reactor)


def site_of(context: ApiContext, routes: Iterable[Endpoint]) -> HttpFactory:
    """Return the factory of a listener with other routes, which share the context's limits and logins."""
    return HttpFactory(ApiSite(context, routes, prefix=""), context.http, context.reactor)


@lru_cache(maxsize=4)
def _url_map(prefix: str, paths: tuple[str, ...]) -> Map:
    """Return the map of these paths. The listeners of a process share it."""
    rules = [MatchedRule(prefix + path, endpoint=path) for path in paths]
    return Map(rules, strict_slashes=False, merge_slashes=False, converters={"default": PathSegment})


def _is_of_api(path: str) -> bool:
    return path == PREFIX or path.startswith(PREFIX + "/")


def _refuse_late_login(_cancelled: object, _timeout_s: float) -> None:
    raise busy("the login took too long")


def _encoded(headers: Mapping[str, str]) -> Headers:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def _allowed(routes: Mapping[str, Endpoint]) -> str:
    methods = ["HEAD", *routes] if "GET" in routes else list(routes)
    return ", ".join([*methods, "OPTIONS"])
