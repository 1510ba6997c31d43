"""Verbs for definitions: all entities except messages, as one JSON document."""

import json
import sys
from pathlib import Path

import click

from gateway.cli.ctl.errors import NoSuchVirtualHost, WrongData
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.verb import verb

STANDARD_STREAM = "-"
FORMAT = click.option("--format", "file_format", type=click.Choice(["json"], case_sensitive=False), default="json")


@verb
@click.argument("file")
@FORMAT
def export_definitions(session: VerbSession, file: str, file_format: str) -> None:
    """Export the definitions to FILE, or to standard output if it is -. With -p, only those of that virtual host."""
    if file != STANDARD_STREAM:
        session.output.announce(f'Exporting definitions in JSON to a file at "{file}" ...')
    with session.on_not_found(NoSuchVirtualHost(session.vhost)):
        exported = session.api.raw("definitions", *_scope(session))
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
    except ValueError as error:
        raise WrongData(f"{file} is not JSON: {error}") from None
    return document


VERBS = (export_definitions, import_definitions)
