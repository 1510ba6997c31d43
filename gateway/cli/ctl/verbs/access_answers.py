"""The verb for answers of other servers about logins and permissions, which plugins keep."""

import click

from gateway.cli.ctl.errors import NoSuchVirtualHost
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.verb import verb


@verb
@click.argument("name", required=False)
def clear_auth_backend_cache(session: VerbSession, name: str | None) -> None:
    """Drop the answers about logins and permissions that plugins keep, in one virtual host or in all."""
    if name is None:
        session.output.announce("Clearing the answers about access of all vhosts ...")
        session.api.delete("auth", "cache")
        return
    session.output.announce(f'Clearing the answers about access of vhost "{name}" ...')
    with session.on_not_found(NoSuchVirtualHost(name)):
        session.api.delete("auth", "cache", name)


VERBS = (clear_auth_backend_cache,)
