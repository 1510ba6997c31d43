"""Health checks of all cells."""

from collections.abc import Generator
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as Late

from gateway.access import Principal
from gateway.management.cells.asking import asked, question_of, settled
from gateway.management.cells.cells import Cells
from gateway.management.http.bodies import parse_object
from gateway.management.http.errors import HttpError
from gateway.management.http.routes import Fields, Reply
from gateway.management.web.request import Request

_OK: Final = 200
_FAILED: Final = 503

#: How long a check waits for the leader of another cell, in seconds.
_ANSWER_S: Final = 5.0

#: The same for a check that the first cell decides: load balancers wait for seconds at most.
_SHORTLY_S: Final = 1.0


def joined_check(
    own: Reply, cells: Cells, request: Request, principal: Principal, reactor: Any, *, needs_all: bool
) -> "Generator[Deferred[None] | None, None, Reply]":  # Any: Twisted's interfaces are not types
    """Return the result of a health check in all cells.

    If it ``needs_all``, it fails where one cell fails, and names those in ``cells``; else it has them, with the
    reasons, in ``failed_cells``.
    """
    failed: dict[int, Fields] = {}
    if own.status != _OK and isinstance(own.fields, dict):
        if not needs_all:
            return own
        failed[cells.own] = own.fields
    question, limit_s = question_of(request, principal), _ANSWER_S if needs_all else _SHORTLY_S
    answers = {cell: asked(cells, cell, question).addTimeout(limit_s, reactor) for cell in cells.others}
    for cell, answer in answers.items():
        fields = yield from _failure(cell, answer, limit_s)
        if fields is not None:
            failed[cell] = fields
    if not failed:
        return own
    if needs_all:
        return Reply(_FAILED, _joined(failed))
    reasons = [{"cell": cell, "reason": fields.get("reason")} for cell, fields in failed.items()]
    return Reply(own.status, {**(own.fields if isinstance(own.fields, dict) else {}), "failed_cells": reasons})


def _failure(
    cell: int, answer: "Deferred[tuple[int, bytes]]", limit_s: float
) -> "Generator[Deferred[None], None, Fields | None]":
    """Return why a check has failed in a cell; ``None`` if it has not."""
    try:
        status, body = yield from settled(answer)
        return None if status == _OK else parse_object(body)
    except HttpError as error:
        reason = str(error.reason)
    except Late:
        reason = f"cell {cell} of the cluster does not answer: it says nothing for {limit_s:.0f} s"
    return {"status": "failed", "reason": reason}


def _joined(failed: dict[int, Fields]) -> Fields:
    """Return the failure of the first cell that has failed, with the alarms of all."""
    found = {**next(iter(failed.values())), "cells": list(failed)}
    if alarms := [alarm for fields in failed.values() for alarm in fields.get("alarms", ())]:
        found["alarms"] = alarms
    return found
