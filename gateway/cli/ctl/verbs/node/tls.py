"""Verbs for TLS: versions, cipher suites, certificates."""

import click

from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, objects, part
from gateway.cli.ctl.verb import verb

COLUMNS = ("file", "host_names", "subject", "issuer", "not_before", "not_after", "is_default", "sha256")


@verb
def tls_versions(session: VerbSession) -> None:
    """List the TLS versions that the library supports, the newest first; tls.min_version limits those allowed."""
    session.output.announce("Listing all TLS versions supported by the runtime...")
    versions = part(_report(session), "versions")
    if session.output.formatter == "json":
        session.output.value({"versions": versions})
    else:
        _print(session, versions)


@verb
@click.option(
    "--all", "every", is_flag=True, help="Accepted for compatibility: those that listeners accept are listed."
)
@click.option("--format", "style", type=click.Choice(["openssl"]), default="openssl", help="OpenSSL's names.")
def cipher_suites(session: VerbSession, every: bool, style: str) -> None:
    """List the cipher suites that the listeners accept."""
    session.output.announce("Listing available cipher suites in OpenSSL format")
    suites = part(_report(session), "cipher_suites")
    if session.output.formatter == "json":
        session.output.value({"cipher_suites": suites, "format": style})
    else:
        _print(session, suites)


@verb
def certificates(session: VerbSession) -> None:
    """List the certificates of the listeners: names of hosts, dates, fingerprints."""
    session.output.announce(f"Certificates of node {session.node()} ...")
    rows: list[JsonObject] = objects(part(_report(session), "certificates"))
    session.output.rows(COLUMNS, rows)


def _report(session: VerbSession) -> Json:
    with session.controlling():
        return session.api.get("tls")


def _print(session: VerbSession, names: Json) -> None:
    for name in names if isinstance(names, list) else []:
        session.output.text(str(name))


VERBS = (tls_versions, cipher_suites, certificates)
