"""Verbs for definitions: all entities except messages, as one JSON document."""

import json
import sys
from pathlib import Path

import click

from gateway.cli.ctl.errors import CommandFailed, NoSuchVirtualHost, WrongData
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, compact, number, objects, part, text
from gateway.cli.ctl.verb import verb

#: The end of a login in a URI whose password is replaced.
_MASKED_LOGIN = b":***@"

STANDARD_STREAM = "-"
FORMAT = click.option("--format", "file_format", type=click.Choice(["json"], case_sensitive=False), default="json")


@verb
@click.argument("file")
@FORMAT
@click.option("--with-secrets", is_flag=True, help="Export the passwords in URIs, too.")
def export_definitions(session: VerbSession, file: str, file_format: str, with_secrets: bool) -> None:
    """Export the definitions to FILE, or to standard output if it is -. With -p, only those of that virtual host.

    Passwords in URIs are replaced by ***, unless --with-secrets is given. The broker keeps its own when it imports the
    file; another broker refuses it.
    """
    if file != STANDARD_STREAM:
        session.output.announce(f'Exporting definitions in JSON to a file at "{file}" ...')
    with session.on_not_found(NoSuchVirtualHost(session.vhost)):
        query = {"secrets": "true"} if with_secrets else {}
        exported = session.api.raw("definitions", *_scope(session), query=query)
    if not with_secrets and (count := exported.count(_MASKED_LOGIN)):
        click.echo(f"passwords in URIs replaced by ***: {count}; --with-secrets exports them", err=True)
    if file == STANDARD_STREAM:
        session.output.text(exported.decode())
        return
    try:
        Path(file).write_bytes(exported)
    except OSError as error:
        raise WrongData(f"cannot write {file}: {error.strerror}") from None


@verb
@click.argument("file", default=STANDARD_STREAM)
@FORMAT
def import_definitions(session: VerbSession, file: str, file_format: str) -> None:
    """Import definitions from FILE or standard input. With -p, into that virtual host."""
    source = "standard input" if file == STANDARD_STREAM else f'a file at "{file}"'
    session.output.announce(f"Importing definitions in JSON from {source} ...")
    document = _read(file)
    with session.on_not_found(NoSuchVirtualHost(session.vhost)):
        session.api.post("definitions", *_scope(session), body=document)
    session.output.conclude("Successfully imported definitions")


def _scope(session: VerbSession) -> tuple[str, ...]:
    """Return the path of the named virtual host; without one, definitions of the whole broker are meant."""
    return () if session.named_vhost is None else (session.named_vhost,)


def _read(file: str) -> bytes:
    """Read the document. :raises WrongData: if it cannot be read or is not JSON."""
    try:
        document = sys.stdin.buffer.read() if file == STANDARD_STREAM else Path(file).read_bytes()
    except OSError as error:
        raise WrongData(f"cannot read {file}: {error.strerror}") from None
    try:
        json.loads(document)
    except (ValueError, RecursionError) as error:
        raise WrongData(f"{file} is not JSON: {error}") from None
    return document


#: The exit code of ``diff``, and of ``apply --dry-run``, when something would change.
DIFFERENT = 2

#: The exit code when something cannot be changed.
CONFLICT = 3

PRUNE = click.option("--prune", is_flag=True, help="Delete what FILE does not have, in the categories that it has.")


class Different(CommandFailed):
    """The broker is not what the file says."""

    exit_code = DIFFERENT


class Conflict(CommandFailed):
    """Something cannot be made what the file says."""

    exit_code = CONFLICT


@click.group("definitions")
def definitions() -> None:
    """Compare definitions with the broker, or apply them as a plan."""


@verb
@click.argument("file", default=STANDARD_STREAM)
@PRUNE
def diff(session: VerbSession, file: str, prune: bool) -> None:
    """Show what FILE would change: exit code 0 for nothing, 2 for changes, 3 for conflicts. With -p, one vhost."""
    plan = _planned(session, "definitions-plan", file, prune)
    _print_plan(session, plan)
    _exit_with(plan)


@verb
@click.argument("file", default=STANDARD_STREAM)
@click.option("--dry-run", is_flag=True, help="Only show what would change, as diff does.")
@PRUNE
def apply(session: VerbSession, file: str, dry_run: bool, prune: bool) -> None:
    """Make the broker what FILE says, as a whole or not at all. With -p, one virtual host."""
    plan = _planned(session, "definitions-plan", file, prune) if dry_run else None
    if plan is None:
        plan = _planned(session, "definitions-apply", file, prune)
    _print_plan(session, plan)
    if dry_run:
        _exit_with(plan)


def _planned(session: VerbSession, path: str, file: str, prune: bool) -> Json:
    document = _read(file)
    with session.on_not_found(NoSuchVirtualHost(session.vhost)):
        return session.api.ask_raw(path, *_scope(session), body=document, query={"prune": str(prune).lower()})


def _print_plan(session: VerbSession, plan: Json) -> None:
    if session.output.formatter == "json":
        session.output.value(plan)
        return
    signs = {"create": "+", "change": "~", "delete": "-", "conflict": "!"}
    for step in objects(part(plan, "steps")):
        place = f" in vhost '{text(step, 'vhost')}'" if text(step, "vhost") else ""
        line = f"{signs[text(step, 'action')]} {text(step, 'category')} '{text(step, 'name')}'{place}"
        session.output.text(f"{line}: {text(step, 'reason')}" if text(step, "reason") else line)
        if text(step, "action") in ("change", "conflict"):
            before, after = part(step, "before"), part(step, "after")
            for name, value in (after if isinstance(after, dict) else {}).items():
                session.output.text(f"    {name}: {compact(part(before, name))} -> {compact(value)}")
    counts = ", ".join(f"{number(plan, name)} to {name}" for name in ("create", "change", "delete"))
    session.output.text(f"{counts}, {number(plan, 'conflict')} conflicts")


def _exit_with(plan: Json) -> None:
    """Raise the error with the exit code of a plan, none if there is nothing to do."""
    if number(plan, "conflict"):
        raise Conflict(f"{number(plan, 'conflict')} entities cannot be changed")
    if objects(part(plan, "steps")):
        raise Different("the broker differs from the definitions")


for _verb in (diff, apply):
    definitions.add_command(_verb)

VERBS = (export_definitions, import_definitions, definitions)
