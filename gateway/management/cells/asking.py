"""Questions to the leaders of other cells about a request of a client."""

from collections.abc import Generator, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from twisted.internet.defer import Deferred

from gateway.access import Principal
from gateway.management.cells.cell_answer import CellFlow, CellQuestion, WholeAnswer
from gateway.management.cells.cells import Cells
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError
from gateway.management.web.request import Request

#: The longest answer of another cell that is joined with others, in bytes.
MOST_JOINED: Final = 64 * 2**20

_REFUSED: Final = 400

#: The listener that answers, unless another one is named.
_MANAGEMENT: Final = "management"


def question_of(
    request: Request,
    principal: Principal,
    *,
    method: str = "",
    target: str = "",
    content: bytes | None = None,
    listener: str = _MANAGEMENT,
) -> CellQuestion:
    """Return a client's request as another leader gets it, perhaps with another method, target or body.

    :raises HttpError: if the login of the user cannot be told to another leader.
    """
    authorization = ""
    if listener != _MANAGEMENT:  # it has logins of its own, or none
        authorization = request.headers.get("authorization", "")
    elif principal.grant is not None:  # an object of a plugin: the other leader asks the plugin itself
        authorization = request.headers.get("authorization", "")
        if not authorization:
            reason = "the permissions of this session are known to one cell; send the token with each request"
            raise HttpError(403, "not_authorised", reason)
    return CellQuestion(
        method or request.method,
        target or request.target,
        principal,
        [*request.headers.items()],
        request.content if content is None else content,
        request.peer_host,
        request.is_secure,
        authorization,
        listener,
    )


def asked(cells: Cells, cell: int, question: CellQuestion) -> "Deferred[tuple[int, bytes]]":
    """Return the status and the body of another leader's answer; fails with ``HttpError`` if there is none."""
    flows: list[CellFlow] = []
    answered: Deferred[tuple[int, bytes]] = Deferred(canceller=lambda _: flows[0].cancel())

    def done(status: int, body: bytes) -> None:
        if not answered.called:
            answered.callback((status, body))

    def failed(error: HttpError) -> None:
        if not answered.called:
            answered.errback(error)

    flows.append(cells.ask(cell, question, WholeAnswer(cell, done, failed, MOST_JOINED)))
    return answered


def question_by(call: Call, method: str, target: str, content: bytes = b"") -> CellQuestion:
    """Return a question in the name of the user of a request."""
    authorization = call.headers.get("authorization", "") if call.principal.grant is not None else ""
    headers = [("user-agent", call.headers.get("user-agent", "")), ("content-type", "application/json")]
    user, host = call.principal, call.peer_host
    return CellQuestion(method, target, user, headers, content, host, call.is_secure, authorization)


def awaited(answer: "Deferred[tuple[int, bytes]]") -> "Generator[Deferred[None], None, tuple[int, bytes]]":
    """Wait for an answer within the steps of a task. :raises HttpError: if it is a refusal, or there is none."""
    status, body = yield from settled(answer)
    if status >= _REFUSED:
        raise refusal(status, body)
    return status, body


def settled(answer: "Deferred[tuple[int, bytes]]") -> "Generator[Deferred[None], None, tuple[int, bytes]]":
    """Wait for an answer, which may be a refusal. :raises HttpError: if there is none."""
    found: list[Any] = []  # Any: the answer, or an error
    waiting: Deferred[None] = Deferred()

    def note(outcome: object) -> None:
        found.append(outcome)
        waiting.callback(None)

    answer.addBoth(note)
    yield waiting
    outcome = found[0]
    if isinstance(outcome, tuple):
        status, body = outcome
        return status, body
    raise outcome.value


def refusal(status: int, body: bytes) -> HttpError:
    """Return the refusal of another leader as an error."""
    from gateway.management.http.bodies import parse_object

    try:
        fields = parse_object(body)
    except HttpError:
        fields = {}
    return HttpError(status, str(fields.get("error", "")), fields.get("reason", ""))


def target_of(path: str, query: Mapping[str, str]) -> str:
    """Return a path with a query."""
    return f"{path}?{urlencode(query)}" if query else path
