"""An import of definitions into a cluster with several cells.

All cells check their parts before one applies its own. So what an import contains is applied everywhere or nowhere, but
for a leader that is lost in between.
"""

from collections.abc import Callable, Generator, Mapping
from json import dumps
from typing import Any, Final, TypeAlias

from twisted.internet.defer import Deferred

from gateway.definitions import check, steps_of
from gateway.definitions.validation import validate
from gateway.kernel.errors import GatewayError
from gateway.management.cells.asking import asked, awaited, question_by
from gateway.management.cells.cells import Cells, PlacedVhost
from gateway.management.cells.definitions import planned_cells, split
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError, busy
from gateway.management.http.routes import Fields
from gateway.management.password_hashing import hash_passwords

Steps: TypeAlias = "Generator[Deferred[None] | None, None, None]"

Ask: TypeAlias = Callable[[int, str, Fields], "Deferred[tuple[int, bytes]]"]
"""Asks the leader of a cell to take definitions at a path."""

CHECK: Final = "/api/definitions-check"
IMPORT: Final = "/api/definitions"

_SOURCE: Final = "definitions"


def importing(call: Call, cells: Cells, document: Fields, *, only_checks: bool) -> Steps:
    """Check definitions whose form is checked in all cells, and apply them then, first those of this one.

    :raises HttpError: if a cell refuses its part, or has no leader; while they are checked nothing has been changed.
    :raises ConfigurationError: if this cell does.
    """
    planned = planned_cells(cells, document)
    parts = yield from split(cells, document, planned)
    own = yield from check(parts.own, _SOURCE)
    yield from validate(own, call.broker, _SOURCE, "/", parts.elsewhere)
    ask = asking_for(call, cells)
    yield from _checked_by_others(ask, parts.others)
    if only_checks:
        return
    yield from hash_passwords(own, call.context.passwords)
    for cell, part in parts.others.items():
        _keep(cells, cell, part)
    new: list[str] = []
    try:
        yield from placing(cells, planned, new)
        yield from steps_of(own, call.broker, _SOURCE, "/", parts.elsewhere)
    except (GatewayError, HttpError):
        for name in new:
            cells.forget_placed(name)
        raise
    yield from _applied_by_others(ask, parts.others, cells.own)


def _keep(cells: Cells, cell: int, part: Fields) -> None:
    """Keep the records of the virtual hosts that the part of a cell names and another request may have placed.

    :raises HttpError: if that request was refused, and the record is gone.
    """
    for entry in part.get("vhosts") or ():
        if cells.cell_of(name := str(entry["name"])) == cell and not cells.keep_placed(name):
            raise busy(f"vhost '{name}' is being deleted; import again")


def _checked_by_others(ask: Ask, parts: Mapping[int, Fields]) -> Steps:
    for cell, part in parts.items():
        try:
            yield from awaited(ask(cell, CHECK, part))
        except HttpError as error:
            raise _with_reason(error, f"cell {cell} of the cluster, nothing was changed: {error.reason}") from None


def _applied_by_others(ask: Ask, parts: Mapping[int, Fields], own: int) -> Steps:
    done = [own]
    for cell, part in parts.items():
        try:
            yield from awaited(ask(cell, IMPORT, part))
        except HttpError as error:
            applied = ", ".join(map(str, done))
            reason = (
                f"cell {cell} of the cluster, after all parts were checked, and those of these cells were applied: "
                f"{applied}; import again: {error.reason}"
            )
            raise _with_reason(error, reason) from None
        done.append(cell)


def _with_reason(error: HttpError, reason: str) -> HttpError:
    return HttpError(error.status, error.error or "bad_request", reason)


def placing(cells: Cells, planned: Mapping[str, int], new: list[str]) -> Steps:
    """Write the records of new virtual hosts, and wait until all nodes know them; ``new`` gets the names of those.

    :raises HttpError: if one was made in another cell meanwhile.
    """
    for name, cell in planned.items():
        placed: list[Any] = []  # Any: the place, or a failure of Twisted, which has no type
        done: Deferred[None] = Deferred()

        def note(outcome: object, placed: list[Any] = placed, done: "Deferred[None]" = done) -> None:
            placed.append(outcome)
            done.callback(None)

        cells.place(name, cell).addBoth(note)
        yield done
        place = placed[0]
        if not isinstance(place, PlacedVhost):
            raise place.value
        if place.is_new:
            new.append(name)
        if place.cell != cell:
            raise busy(f"vhost '{name}' was made in cell {place.cell} of the cluster meanwhile; import again")


def asking_for(call: Call, cells: Cells) -> Ask:
    """Return what asks other cells in the name of the user of a request."""

    def ask(cell: int, path: str, part: Fields) -> "Deferred[tuple[int, bytes]]":
        return asked(cells, cell, question_by(call, "POST", path, dumps(part).encode()))

    return ask
