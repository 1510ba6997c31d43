"""/definitions: export and import of definitions, and a check without an import."""

from collections.abc import Generator
from typing import Final, TypeAlias

from twisted.internet.defer import Deferred

from gateway.definitions import Definitions, check, entry_counts, scan, steps_of
from gateway.definitions.validation import validate
from gateway.management.auditing.recorder import actor_of
from gateway.management.cells.cells import Cells
from gateway.management.cells.definitions_import import importing
from gateway.management.exporting import export, export_vhost
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request, busy, unknown_vhost
from gateway.management.http.routes import ANY_BODY, Fields, LongTask, Routes, Streamed
from gateway.management.password_hashing import hash_passwords

Steps: TypeAlias = "Generator[Deferred[None] | None, None, None]"

routes = Routes()

_SOURCE: Final = "definitions"

#: Categories in the definitions of one virtual host.
_OF_A_VHOST: Final = ("parameters", "policies", "queues", "exchanges", "bindings")


@routes.get("/definitions", "/all-configuration", level=AccessLevel.ADMINISTRATOR)
def whole(call: Call) -> Streamed:
    """Export the definitions of the broker. Passwords in URIs are replaced, unless the query has ``secrets=true``."""
    return Streamed(export(call.broker, with_secrets=_with_secrets(call)))


@routes.post("/definitions", "/all-configuration", level=AccessLevel.ADMINISTRATOR, largest_body=ANY_BODY)
def import_whole(call: Call) -> LongTask:
    """Import definitions; existing entities are kept."""
    return LongTask(_import_steps(call), is_exclusive=True)


@routes.post("/definitions-check", level=AccessLevel.ADMINISTRATOR, largest_body=ANY_BODY)
def check_whole(call: Call) -> LongTask:
    """Check definitions as an import does, and change nothing."""
    return LongTask(_import_steps(call, only_checks=True), is_exclusive=True)


@routes.get("/definitions/<vhost>", level=AccessLevel.ADMINISTRATOR)
def of_vhost(call: Call, vhost: str) -> Streamed:
    """Export the definitions of one virtual host, with secrets as the whole export."""
    if vhost not in call.broker.vhost_by_name:
        raise bad_request("vhost_not_found")
    return Streamed(export_vhost(call.broker, call.broker.vhost(vhost), with_secrets=_with_secrets(call, vhost)))


@routes.post("/definitions/<vhost>", level=AccessLevel.ADMINISTRATOR, largest_body=ANY_BODY)
def import_vhost(call: Call, vhost: str) -> LongTask:
    """Import definitions into one virtual host, regardless of the one they were exported from."""
    if vhost not in call.broker.vhost_by_name:
        raise unknown_vhost()
    return LongTask(_import_steps(call, vhost), is_exclusive=True)


def _with_secrets(call: Call, vhost: str = "") -> bool:
    """Return whether the export has the passwords in URIs; an export that asked for them is recorded."""
    shown = call.shows_secrets
    if call.is_set("secrets"):
        call.broker.audit.record(actor_of(call), "definitions.exported", vhost, vhost, details={"secrets": True})
    return shown


def _import_steps(call: Call, vhost: str | None = None, *, only_checks: bool = False) -> Steps:
    """Parse, check and apply definitions, all or those of ``vhost``; nothing is applied before all is checked."""
    document = yield from decoded_document(call.content)
    if vhost is not None:
        document = yield from assign_vhost(document, vhost)
    definitions = yield from check(document, _SOURCE)
    call.audit_details["entries"] = entry_counts(definitions)
    cells = None if vhost is not None else call.context.cells
    if cells is not None and cells.is_first:
        document = yield from decoded_document(call.content)  # the check has emptied the former one
        yield from importing(call, cells, document, only_checks=only_checks)
        return
    if cells is not None:
        _require_own(cells, definitions, are_placed=not only_checks)
    del document
    if only_checks:
        yield from validate(definitions, call.broker, _SOURCE, vhost or "/")
        return
    yield from hash_passwords(definitions, call.context.passwords)
    yield from steps_of(definitions, call.broker, _SOURCE, vhost or "/")


def _require_own(cells: Cells, definitions: Definitions, *, are_placed: bool) -> None:
    """Require virtual hosts of this cell, which is not the first one, or new ones unless they ``are_placed`` already.

    :raises HttpError: if another cell has one: this node knows of it, or not yet of the record of a new one.
    """
    for vhost in definitions.vhosts:
        cell = cells.cell_of(vhost.name)
        if cell != cells.own and (are_placed or cell is not None):
            raise busy(f"vhost '{vhost.name}' does not belong to cell {cells.own} of the cluster; try again")


def decoded_document(content: bytes) -> Generator[None, None, Fields]:
    """Decode the definitions of a request, in steps. :raises HttpError: if they are not a JSON object."""
    try:
        document = yield from scan(content.decode() or "{}")
    except (ValueError, RecursionError):
        raise bad_request("failed_to_parse_json") from None
    if not isinstance(document, dict):
        raise bad_request("not_json")
    return document


def assign_vhost(fields: Fields, vhost: str) -> Generator[None, None, Fields]:
    """Return the categories of a virtual host with every entry assigned to this one."""
    kept: Fields = {}
    for category in _OF_A_VHOST:
        entries = fields.get(category, [])
        if not isinstance(entries, list):
            return {category: entries}  # the check reports the error
        assigned = kept[category] = []
        for entry in entries:
            assigned.append({**entry, "vhost": vhost} if isinstance(entry, dict) else entry)
            yield
    return kept
