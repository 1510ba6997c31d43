"""The HTTP side of the management API: from a request to a resource, and from what it returns to an answer.

Klein finds the resource of a path. Who asks is judged first, and a change is answered once it is durable. Long work
shares the reactor: it is done in slices of a few milliseconds.
"""

from collections.abc import Generator, Iterator, Mapping
from functools import partial
from typing import Any, Final

from klein import Klein
from klein.resource import KleinResource
from twisted.internet.defer import CancelledError, Deferred, DeferredLock, maybeDeferred
from twisted.internet.task import Cooperator
from twisted.python.failure import Failure
from twisted.web.server import Site
from werkzeug.exceptions import HTTPException
from werkzeug.routing import BaseConverter

from gateway.access import Principal
from gateway.kernel.errors import GatewayError
from gateway.logs import Log
from gateway.management.authenticating import authenticated
from gateway.management.authority import Level
from gateway.management.call import Call
from gateway.management.downloads import Download, Sending
from gateway.management.errors import HttpError, login_failed, missing, translated
from gateway.management.http import LimitedRequest, credentials_of, decoded, headers_of, peer_host_of, query_of
from gateway.management.listing import Listing
from gateway.management.resources.table import ROUTES
from gateway.management.routes import Gradual, Reply, Route
from gateway.management.scope import Surroundings
from gateway.management.views.json import encode

_log: Final = Log("management")

PREFIX: Final = "/api"
_JSON: Final = b"application/json"


class Api:
    """Answers the requests of one site."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._cooperator = Cooperator(scheduler=partial(surroundings.reactor.callLater, 0))
        self._turns = DeferredLock()
        self.app = Klein()
        self.app.url_map.strict_slashes = False
        self.app.url_map.merge_slashes = False
        self.app.url_map.converters["default"] = Segment
        by_path: dict[str, dict[str, Route]] = {}
        for route in ROUTES:
            by_path.setdefault(route.path, {})[route.method] = route
        for path, routes in by_path.items():
            self._mount(path, routes)
        self.app.handle_errors(HTTPException)(self._no_such_path)

    def _mount(self, path: str, routes: Mapping[str, Route]) -> None:
        def answer(request: Any, **names: str) -> "Deferred[bytes]":
            return self._answer(routes, request, names)

        self.app.route(PREFIX + path, endpoint=path)(answer)

    def _no_such_path(self, request: Any, failure: Failure) -> bytes:
        return self._write(request, Reply(404, missing().fields))

    # One request

    def _answer(self, routes: Mapping[str, Route], request: Any, names: Mapping[str, str]) -> "Deferred[bytes]":
        answered: Deferred[Any] = maybeDeferred(self._judged, routes, request, names)
        answered.addCallback(partial(self._respond, request))
        answered.addErrback(partial(self._refused, request))
        return answered

    def _route(self, routes: Mapping[str, Route], request: Any) -> Route | None:
        method = request.method.decode("latin-1")
        if method == "OPTIONS":
            request.setHeader(b"Allow", _allowed(routes))
            return None
        route = routes.get("GET" if method == "HEAD" else method)
        if route is None:
            raise HttpError(405, headers={"Allow": _allowed(routes).decode()})
        return route

    def _judged(self, routes: Mapping[str, Route], request: Any, names: Mapping[str, str]) -> object:
        """Do what a request is for, once it is known who asks."""
        route = self._route(routes, request)
        if route is None:
            return Reply(200)
        if route.level is Level.ANYBODY:
            return self._perform(route, request, names, Principal("", frozenset()))
        judged: Deferred[Any] = authenticated(self._surroundings.login, credentials_of(request))
        judged.addCallback(partial(self._perform, route, request, names))
        return judged

    def _perform(self, route: Route, request: Any, names: Mapping[str, str], principal: Principal | None) -> object:
        if route.level is not Level.ANYBODY:
            self._surroundings.broker.connections.count_login("http", principal is not None)
        if principal is None:
            raise login_failed()
        if (refusal := route.level.refusal(principal.tags)) is not None:
            raise refusal
        content, peer_host = request.content.read(), peer_host_of(request)
        call = Call(self._surroundings, principal, query_of(request), content, headers_of(request), peer_host)
        try:
            result = route.resource(call, **{name: decoded(value) for name, value in names.items()})
            return self._gradually(result, call.query) if isinstance(result, Gradual | Listing) else result
        finally:
            self._surroundings.touch()

    def _gradually(self, result: "Gradual | Listing[Any]", query: Mapping[str, str]) -> "Deferred[object]":
        gradual = result if isinstance(result, Gradual) else Gradual(result.collect(query))
        work = Work(gradual.steps, self._surroundings.touch)

        def begin() -> "Deferred[object]":
            return self._cooperator.coiterate(iter(work)).addCallback(lambda _: work.result)

        return self._turns.run(begin) if gradual.waits_its_turn else begin()

    # Answers

    def _respond(self, request: Any, result: object) -> "bytes | Deferred[bytes]":
        if isinstance(result, Download):
            return self._send(request, result)
        if not isinstance(result, Reply):
            result = Reply(204) if result is None else Reply(200, result)
        content = self._write(request, result)
        if request.method in (b"GET", b"HEAD", b"OPTIONS"):
            return content
        return self._when_durable(content)

    def _send(self, request: Any, download: Download) -> "Deferred[bytes]":
        request.setHeader(b"Cache-Control", b"no-cache")
        request.setHeader(b"Content-Length", str(download.size).encode())
        for name, value in download.headers.items():
            request.setHeader(name.encode(), value.encode())
        return Sending(request, download, self._surroundings.reactor.callLater).begin()

    def _when_durable(self, content: bytes) -> "Deferred[bytes]":
        """Answer a change when a crash would not undo it."""
        answered: Deferred[bytes] = Deferred(canceller=lambda _: None)
        journal = self._surroundings.broker.journal

        def answer() -> None:
            if not answered.called:
                answered.callback(content)

        journal.when_durable(journal.pending_lsn, answer)
        return answered

    def _refused(self, request: Any, failure: Failure) -> bytes:
        error = failure.value
        if isinstance(error, CancelledError):  # nobody is there to hear an answer
            return b""
        if isinstance(error, GatewayError):
            error = translated(error)
        if not isinstance(error, HttpError):
            _log.error("internal error", path=request.path.decode("latin-1"), error=failure.getTraceback())
            error = HttpError(500, "internal_error", "the gateway failed at this, see its log")
        return self._write(request, Reply(error.status, error.fields, error.headers))

    def _write(self, request: Any, reply: Reply) -> bytes:
        content = b"" if reply.fields is None else encode(reply.fields)
        request.setResponseCode(reply.status)
        request.setHeader(b"Cache-Control", b"no-cache")
        for name, value in reply.headers.items():
            request.setHeader(name.encode(), value.encode())
        if reply.fields is not None:
            request.setHeader(b"Content-Type", _JSON)
        if reply.status != 204:
            request.setHeader(b"Content-Length", str(len(content)).encode())
        return content


class Work:
    """Long work as an iterator of small steps; ``result`` is there after the last.

    ``touch`` is called with each step, so that every slice of it ends in a turn.
    """

    def __init__(self, steps: Generator[None, None, object], touch: Any) -> None:
        self.result: object = None
        self._steps = steps
        self._touch = touch

    def __iter__(self) -> Iterator[None]:
        steps = self._finish()
        for step in steps:
            self._touch()
            yield step

    def _finish(self) -> Generator[None, None, None]:
        self.result = yield from self._steps


class Segment(BaseConverter):
    """A part of a path between two slashes, still percent-encoded; it may be empty, as the default exchange's name."""

    regex = "[^/]*"


class Root(KleinResource):
    """Hands paths to Klein with their segments still encoded, so that ``%2F`` stays part of a name."""

    def render(self, request: Any) -> Any:
        """Find the resource and let it answer."""
        request.postpath = request.path.rstrip(b"/").split(b"/")[1:]
        return super().render(request)


def management_site(surroundings: Surroundings) -> Any:
    """Return the site, ready to be listened with."""
    request = type("ManagementRequest", (LimitedRequest,), {"max_body_size": surroundings.max_body_size})
    site: Any = Site(Root(Api(surroundings).app), requestFactory=request, reactor=surroundings.reactor)  # type: ignore[no-untyped-call]  # Twisted's
    site.noisy = False
    site.log = lambda request: None  # what matters is in our own log
    return site


def _allowed(routes: Mapping[str, Route]) -> bytes:
    methods = ["HEAD", *routes] if "GET" in routes else list(routes)
    return ", ".join([*methods, "OPTIONS"]).encode()
