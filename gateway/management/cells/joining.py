"""Listings and sums over all cells."""

from collections.abc import Generator, Mapping
from typing import Any, Final

from twisted.internet.defer import Deferred

from gateway.access import Principal
from gateway.definitions import scan
from gateway.management.cells.asking import asked, awaited, question_of, target_of
from gateway.management.cells.cells import Cells
from gateway.management.cells.routing import joined_query
from gateway.management.http.errors import HttpError
from gateway.management.http.listing import Listing
from gateway.management.http.routes import Fields, Streamed
from gateway.management.web.request import Request

_UNAVAILABLE: Final = 503

#: The parts of an overview that are sums over the cells.
_SUMMED: Final = ("message_stats", "churn_rates", "queue_totals", "object_totals", "set_aside")

#: Numbers that are the same in all cells.
_SAME: Final = frozenset({"timestamp", "interval"})


def joined_listing(
    listing: Listing[Any], cells: Cells, request: Request, principal: Principal, query: Mapping[str, str]
) -> "Generator[Deferred[None] | None, None, Streamed]":
    """Return the listing of all cells. :raises HttpError: if the leader of one does not answer."""
    views: list[Fields] = []
    target = target_of(request.path, joined_query(query))
    for document in (yield from documents(cells, request, principal, target)):
        if isinstance(document, list):
            views += [each for each in document if isinstance(each, dict)]
    return Streamed(listing.joined(views).pieces(query))


def joined_list(
    own: list[Fields], cells: Cells, request: Request, principal: Principal
) -> "Generator[Deferred[None] | None, None, list[Fields]]":
    """Return a list with that of each other cell; each entry names its ``cell``."""
    found = [{**each, "cell": cells.own} for each in own]
    answers = yield from documents(cells, request, principal, request.target)
    for cell, document in zip(cells.others, answers, strict=True):
        found += [{**each, "cell": cell} for each in document]
    return found


def joined_overview(
    fields: Fields, cells: Cells, request: Request, principal: Principal
) -> "Generator[Deferred[None] | None, None, Fields]":
    """Return an overview with the sums over all cells; those that do not answer are left out, and named."""
    silent: list[int] = []
    for document in (yield from documents(cells, request, principal, request.target, silent)):
        if isinstance(document, dict):
            for name in _SUMMED:
                if name in fields:
                    fields[name] = summed(fields[name], document.get(name))
    return {**fields, "silent_cells": silent} if silent else fields


def documents(
    cells: Cells, request: Request, principal: Principal, target: str, silent: list[int] | None = None
) -> "Generator[Deferred[None] | None, None, list[Any]]":
    """Return the JSON of each other cell for a GET of this target, in steps; all are asked at once.

    Cells that do not answer are added to ``silent``.

    :raises HttpError: without ``silent``, if one does not answer.
    """
    question = question_of(request, principal, method="GET", target=target, content=b"")
    answers = {cell: asked(cells, cell, question) for cell in cells.others}
    found = []
    for cell, answer in answers.items():
        try:
            _, body = yield from awaited(answer)
        except HttpError as error:
            if silent is None or error.status != _UNAVAILABLE:
                raise
            silent.append(cell)
            continue
        try:
            found.append((yield from scan(body.decode())))
        except (ValueError, RecursionError):
            raise HttpError(500, "internal_error", "another cell of the cluster has answered no JSON") from None
    return found


def summed(own: Any, other: Any) -> Any:  # Any: parts of JSON
    """Return the sum of two parts of overviews: of their numbers, and of the samples of the same time."""
    if isinstance(own, dict):
        other = other if isinstance(other, dict) else {}
        names = dict.fromkeys((*own, *other))
        return {
            name: own.get(name, other.get(name)) if name in _SAME else summed(own.get(name), other.get(name))
            for name in names
        }
    if isinstance(own, list) and isinstance(other, list) and len(own) == len(other):
        return [summed(mine, yours) for mine, yours in zip(own, other, strict=True)]
    if isinstance(own, int | float) and isinstance(other, int | float):
        return own + other
    return other if own is None else own
