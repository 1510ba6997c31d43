"""Definitions in a cluster with several cells: each cell has those of its virtual hosts, the first one all others."""

from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from json import dumps
from typing import Any, Final, TypeAlias

from twisted.internet.defer import Deferred

from gateway.access import Principal
from gateway.definitions import scan
from gateway.management.cells.asking import asked, awaited
from gateway.management.cells.cell_answer import CellQuestion
from gateway.management.cells.cells import Cells
from gateway.management.cells.joining import documents
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError, bad_request
from gateway.management.http.routes import Fields, Pieces, Streamed
from gateway.management.views.json import encode
from gateway.management.web.request import Request

Steps: TypeAlias = "Generator[Deferred[None] | None, None, None]"

_PATH: Final = "/api/definitions"

#: The categories whose entries name their virtual host.
_IN_VHOSTS: Final = ("parameters", "policies", "queues", "exchanges", "bindings")

#: Entries that are handled in one step.
_STEP: Final = 50


def joined_export(
    own: Iterator[Any], cells: Cells, request: Request, principal: Principal
) -> "Generator[Any, None, Streamed]":
    """Return the definitions of all cells."""
    pieces = []
    for piece in own:
        if isinstance(piece, bytes):
            pieces.append(piece)
        yield None
    document: Any = yield from scan(b"".join(pieces).decode())  # Any: JSON
    for other in (yield from documents(cells, request, principal, request.target)):
        for category in ("vhosts", *_IN_VHOSTS):
            document[category] += other.get(category, [])
    return Streamed(_written(document))


def _written(document: Fields) -> Pieces:
    """Yield a document in pieces."""
    yield encode({name: value for name, value in document.items() if not isinstance(value, list)})[:-1]
    for category, entries in document.items():
        if isinstance(entries, list):
            yield b"," + encode(category) + b":["
            comma, source = b"", iter(entries)
            while batch := list(islice(source, _STEP)):
                yield comma + b",".join(map(encode, batch))
                comma = b","
            yield b"]"
    yield b"}"


def placing(cells: Cells, document: Fields) -> "Generator[Deferred[None] | None, None, list[str]]":
    """Choose cells for the virtual hosts of definitions that do not exist yet; return their names.

    :raises HttpError: if one of them is being deleted.
    """
    new: list[str] = []
    for name in _names(document.get("vhosts", ())):
        if cells.is_being_deleted(name):
            raise bad_request(f"vhost '{name}' is being deleted, try again later")
        if cells.cell_of(name) is None:
            done: Deferred[None] = Deferred()
            failures: list[Any] = []  # Any: Twisted's failures have no type

            def placed(outcome: object, done: "Deferred[None]" = done, failures: list[Any] = failures) -> None:
                if not isinstance(outcome, int):
                    failures.append(outcome)
                done.callback(None)

            cells.place(name).addBoth(placed)
            yield done
            if failures:
                raise failures[0].value
            new.append(name)
    return new


def split(cells: Cells, document: Fields) -> Generator[None, None, dict[int, Fields]]:
    """Return the definitions of each cell."""
    parts: dict[int, Fields] = {cells.own: dict(document)}
    for category in ("vhosts", *_IN_VHOSTS):
        key = "name" if category == "vhosts" else "vhost"
        entries = document.get(category)
        if not isinstance(entries, list):
            continue
        parts[cells.own][category] = []
        for number, entry in enumerate(entries):
            cell = cells.cell_of(str(entry.get(key, "/"))) or cells.own
            part = parts.setdefault(cell, _head_of(document))
            part.setdefault(category, []).append(entry)
            if number % _STEP == 0:
                yield
    return parts


def importing(call: Call, cells: Cells, parts: dict[int, Fields]) -> Steps:
    """Let the leaders of the other cells import their parts. :raises HttpError: if one refuses."""
    for cell, part in parts.items():
        if cell == cells.own:
            continue
        content = dumps(part).encode()
        try:
            yield from awaited(asked(cells, cell, _question(call, content)))
        except HttpError as error:
            reason = f"cell {cell} of the cluster, after the cells before it were changed: {error.reason}"
            raise HttpError(error.status, error.error or "bad_request", reason) from None


def _question(call: Call, content: bytes) -> CellQuestion:
    has_grant = call.principal.grant is not None
    authorization = call.headers.get("authorization", "") if has_grant else ""
    headers = [("user-agent", call.headers.get("user-agent", "")), ("content-type", "application/json")]
    return CellQuestion("POST", _PATH, call.principal, headers, content, call.peer_host, call.is_secure, authorization)


def _head_of(document: Fields) -> Fields:
    """Return what is in no category: the version."""
    return {name: value for name, value in document.items() if not isinstance(value, list | dict)}


def _names(entries: Iterable[Any]) -> list[str]:
    return [str(entry["name"]) for entry in entries if isinstance(entry, dict) and "name" in entry]
