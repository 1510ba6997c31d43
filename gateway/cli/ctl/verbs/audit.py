"""Verbs for the audit record, which rabbitmqctl does not have."""

import sys
from pathlib import Path
from typing import Final

import click

from gateway.cli.ctl.audit_files import ExportedEntries, append_entries, entries_or_empty, read_entries
from gateway.cli.ctl.audit_verification import AuditVerification, Note
from gateway.cli.ctl.errors import Declined, WrongUsage
from gateway.cli.ctl.listing import NounListing, columns_argument
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import JsonObject, number, objects, part
from gateway.cli.ctl.verb import verb

_COLUMNS: Final = (
    *("number", "at", "at_ms", "user", "address", "surface", "action", "vhost", "subject", "before", "after"),
    *("details", "previous", "digest"),
)

LISTING: Final = NounListing(
    path=("audit",),
    columns={name: name for name in _COLUMNS},
    defaults=("at", "user", "address", "surface", "action", "vhost", "subject"),
    banner="Listing the audit record ...",
)

#: Largest page of the API.
_MAX_PAGE_SIZE: Final = 500


@verb
@columns_argument
@click.option("--user", help="Only changes of this user.")
@click.option("--address", help="Only changes from this address.")
@click.option("--surface", help="Only changes by HTTP, CLI, definitions, configuration, plugin or amqp.")
@click.option("--action", help="Only this action, such as user.created; a final * stands for anything.")
@click.option("--subject", help="Only changes of this object; a final * stands for anything.")
@click.option("--since", help="Only changes since a time such as 2026-11-24T08:00:00Z.")
@click.option("--until", help="Only changes up to this time.")
@click.option("--limit", type=click.IntRange(min=1), default=100, help="Maximum number to list, the newest. [100]")
def audit(session: VerbSession, columns: tuple[str, ...], limit: int, **filters: str | None) -> None:
    """List the changes that operators made, the newest first. With -p, those in a virtual host."""
    chosen = LISTING.chosen(columns)
    session.output.announce(LISTING.banner)
    wanted = {name: value for name, value in filters.items() if value is not None}
    if session.named_vhost is not None:
        wanted["vhost"] = session.named_vhost
    found = _newest(session, wanted, limit)
    session.output.rows(chosen, [LISTING.row(each, chosen) for each in found])


def _newest(session: VerbSession, wanted: dict[str, str], limit: int) -> list[JsonObject]:
    found: list[JsonObject] = []
    size = min(limit, _MAX_PAGE_SIZE)
    page, pages = 1, 1
    while page <= pages and len(found) < limit:
        answer = session.api.get("audit", query={**wanted, "page": str(page), "page_size": str(size)})
        found += objects(part(answer, "items"))
        page, pages = page + 1, number(answer, "page_count")
    return found[:limit]


@verb
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--since", "noted", metavar="NUMBER:DIGEST", help="Also compare an entry that was noted earlier.")
@click.option("--cell", type=click.IntRange(min=1), help="The cell of a cluster that has several.")
def verify_audit(session: VerbSession, files: tuple[Path, ...], noted: str | None, cell: int | None) -> None:
    """Verify the chain of the audit record, or of files that export_audit wrote, given in their order.

    Names each entry that was changed, removed, inserted or moved, and fails if there is one. Prints the number and the
    digest of the newest entry, to be noted elsewhere.
    """
    note = None if noted is None else Note.parse(noted)
    if noted is not None and note is None:
        raise WrongUsage(f"--since: '{noted}' is not a number and a digest, as verify_audit prints them")
    verification = AuditVerification(note)
    if files:
        for path in files:
            found = read_entries(path)
            verification.verify(entries_or_empty(found.entries))
            if found.torn_bytes:
                session.output.announce(f"{path}: the last line was torn by a crash, {found.torn_bytes} bytes")
    else:
        session.output.announce("Verifying the audit record ...")
        verification.verify(_oldest_first(session, cell))
    verification.end()
    if verification.unchained:
        session.output.announce(f"{verification.unchained} entries of an earlier version have no digests")
    if verification.findings:
        session.output.rows(("entry", "finding"), [each._asdict() for each in verification.findings])
        count = len(verification.findings)
        raise Declined(f"the audit record was changed, {count} finding{'s' if count > 1 else ''}")
    newest = verification.newest
    end = "" if newest is None else f", the newest is {newest.number}:{newest.digest}"
    session.output.conclude(f"{verification.verified} entries are unchanged{end}")


@verb
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--cell", type=click.IntRange(min=1), help="The cell of a cluster that has several.")
def export_audit(session: VerbSession, file: Path, cell: int | None) -> None:
    """Append the entries of the audit record that a file does not have, as lines of JSON, to keep them for longer."""
    session.output.announce(f"Exporting the audit record to {file} ...")
    found = read_entries(file) if file.exists() else ExportedEntries([], 0)
    last = max((number(entry, "number") for entry in found.entries if entry is not None), default=0)
    later = (entry for entry in _oldest_first(session, cell) if number(entry, "number") > last)
    count = append_entries(file, found.torn_bytes, later)
    session.output.conclude(f"{count} entries were added")


def _oldest_first(session: VerbSession, cell: int | None) -> list[JsonObject]:
    """Return all entries, those of one cell. :raises Declined: if the cluster has several and none is named."""
    wanted = {} if cell is None else {"cell": str(cell)}
    found = {number(entry, "number"): entry for entry in _newest(session, wanted, sys.maxsize)}
    if cell is None and any("cell" in entry for entry in found.values()):
        raise Declined("each cell of the cluster has a chain of its own: name one, such as --cell 1")
    return [found[each] for each in sorted(found)]


VERBS = (audit, verify_audit, export_audit)
