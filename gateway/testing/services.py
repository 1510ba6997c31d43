"""The contracts of HTTP resources, verbs and panels of plugins as checks. No broker runs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from twisted.internet.defer import Deferred

from gateway.access import Permissions, Principal
from gateway.kernel.errors import Refused
from gateway.kernel.plugin_times import CALL_LIMIT_S
from gateway.management.plugin_replies import encoded_row, reply_of
from gateway.plugins.services.ctl_verb import CtlVerb, problem_of_verb
from gateway.plugins.services.http_resource import HttpRequest, HttpResource, problem_of_resource
from gateway.plugins.services.ui_panel import UiPanel, problem_of_panel
from gateway.testing.call_timer import CallTimer, is_slower

#: Texts that clients may send as variables of a path and in a query.
TEXTS: Final = ("", "unknown", "a/b", "-1", "Ä\n", "x" * 1000, "999999999999999999999", "NaN", "%s{0}")

#: Bodies that clients may send.
BODIES: Final = (b"", b"{}", b"[]", b"null", b"{", b"\xff\xfe", b'{"unknown": [1, {"a": null}]}', b"x" * 10_000)

#: Rows that are looked at.
_MOST_ROWS: Final = 1000


def check_http_resource(resource: HttpResource, requests: Sequence[HttpRequest] = ()) -> None:
    """Check a resource with unusual requests, and with ``requests`` of its own kind, which it must not refuse.

    A resource that waits for a Deferred is checked up to there.

    :raises AssertionError: with a sentence that names the broken promise.
    """
    if (problem := problem_of_resource(resource)) is not None:
        raise AssertionError(f"A plugin with this resource is refused: {problem}.")
    for request in requests:
        if _answer(resource, request) is _REFUSED:
            raise AssertionError(f"The resource refused {_described(request)}.")
    for request in _unusual_requests(resource):
        _answer(resource, request)


def check_ctl_verb(verb: CtlVerb, resources: Sequence[HttpResource]) -> None:
    """Check a verb. ``resources`` are those of the same plugin.

    :raises AssertionError: with a sentence that names the broken promise.
    """
    if (problem := problem_of_verb(verb, resources)) is not None:
        raise AssertionError(f"A plugin with this verb is refused: {problem}.")


def check_ui_panel(panel: UiPanel, resources: Sequence[HttpResource]) -> None:
    """Check a panel, and that its resource returns what a panel of its kind shows.

    :param resources: those of the same plugin.
    :raises AssertionError: with a sentence that names the broken promise.
    """
    if (problem := problem_of_panel(panel, resources)) is not None:
        raise AssertionError(f"A plugin with this panel is refused: {problem}.")
    resource = next(each for each in resources if (each.method, each.path) == ("GET", panel.path))
    answer = _answer(resource, sample_request("GET", query=panel.query))
    if isinstance(answer, Deferred):
        return
    if panel.kind == "table":
        columns = [column.name for column in panel.columns]
        is_shown = isinstance(answer, list) and all(
            isinstance(row, Mapping) and all(column in row for column in columns) for row in answer
        )
    elif panel.kind == "numbers":
        is_shown = isinstance(answer, Mapping) and all(isinstance(value, int | float) for value in answer.values())
    else:
        is_shown = isinstance(answer, str)
    if not is_shown:
        raise AssertionError(f"The panel {panel.title!r} shows {panel.kind}; its resource returned {answer!r:.200}.")


def sample_request(
    method: str = "GET",
    names: Mapping[str, str] | None = None,
    query: Mapping[str, str] | None = None,
    body: bytes = b"",
    *,
    user: str = "guest",
) -> HttpRequest:
    """Return a request of an administrator with all permissions in the virtual host ``/``."""
    principal = Principal(user, frozenset({"administrator"}))
    return HttpRequest(method, names or {}, query or {}, body, principal, Permissions(user, "/", ".*", ".*", ".*"))


#: The answer of a resource that refused a request.
_REFUSED: Final = object()


def _answer(resource: HttpResource, request: HttpRequest) -> object:
    """Return the answer of a resource, rows as a list."""
    timer = CallTimer()
    try:
        answer = resource.answer(request)
    except Refused:
        return _REFUSED
    except Exception as error:  # foreign code: any exception is a finding
        raise AssertionError(f"The resource raised {error!r} for {_described(request)}.") from error
    if is_slower(lambda: resource.answer(request), timer.seconds, CALL_LIMIT_S):
        raise AssertionError(f"The resource takes longer than {CALL_LIMIT_S * 1e3:g} ms for {_described(request)}.")
    if answer is None or isinstance(answer, Deferred):
        return answer
    try:
        if isinstance(answer, list | tuple | Iterator):
            rows = [row for row in islice(answer, _MOST_ROWS) if row is not None]
            for row in rows:
                encoded_row(row)
            return rows
        reply_of(answer)
    except Exception as error:  # also of a generator of the plugin
        raise AssertionError(f"The answer to {_described(request)} cannot be sent: {error!r}.") from error
    return answer


def _unusual_requests(resource: HttpResource) -> Iterator[HttpRequest]:
    queries: list[Mapping[str, str]] = [{}, *({"unknown": value, "": value} for value in TEXTS)]
    for value in TEXTS:
        for body in BODIES if resource.method in ("PUT", "POST") else (b"",):
            yield sample_request(resource.method, dict.fromkeys(resource.variables, value), body=body)
    for query in queries:
        yield sample_request(resource.method, dict.fromkeys(resource.variables, "name"), query)


def _described(request: HttpRequest) -> str:
    return (
        f"the {request.method} with names {dict(request.names)!r:.200}, query {dict(request.query)!r:.200} "
        f"and body {request.body[:60]!r}"
    )
