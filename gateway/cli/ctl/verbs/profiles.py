"""Profiles: the brokers of a user, in a file on this computer."""

from collections.abc import Callable
from typing import Final

import click

from gateway.cli.ctl.address import ApiAddress
from gateway.cli.ctl.connecting.profile_changes import add_profile, remove_profile, use_profile
from gateway.cli.ctl.connecting.profiles import Profile, profile_file, profiles_by_name
from gateway.cli.ctl.errors import WrongUsage
from gateway.cli.ctl.output import Output
from gateway.cli.ctl.values import Json
from gateway.cli.ctl.verb import shared_options
from gateway.cli.ctl.verbs.users import given_password

#: The shared options that a verb has which asks no broker.
_OPTIONS: Final = ("formatter", "quiet", "silent", "no_table_headers")

_SECRETS: Final = ("password", "password_command", "token_command")


@click.group("profile")
def profile() -> None:
    """List, add, remove and choose the profiles that --profile names."""


def _local(action: Callable[..., None]) -> click.Command:
    """Make a verb that asks no broker; it is called with its output and its own arguments."""

    def run(formatter: str | None, quiet: bool, silent: bool, no_table_headers: bool, **arguments: object) -> None:
        output = Output(formatter or "table", is_quiet=quiet, is_silent=silent, has_headers=not no_table_headers)
        action(output, **arguments)
        output.end()

    run.__doc__ = action.__doc__
    run.__dict__.update(action.__dict__)  # click's parameters
    command = click.command(action.__name__.rstrip("_"))(run)
    command.params += [option for option in shared_options() if option.name in _OPTIONS]
    return command


@_local
def list_(output: Output) -> None:
    """List the profiles, without their passwords."""
    output.announce(f"Listing profiles of {profile_file()} ...")
    default, profiles = profiles_by_name()
    rows: list[dict[str, Json]] = [
        {
            "name": name,
            "default": name == default,
            "url": found.url,
            "user": found.user,
            "vhost": found.vhost,
            "secret": ", ".join(secret for secret in _SECRETS if getattr(found, secret)),
        }
        for name, found in sorted(profiles.items())
    ]
    output.rows(("name", "default", "url", "user", "vhost", "secret"), rows)


@_local
@click.argument("name")
@click.option("--url", help="The broker's management API.")
@click.option("--username", "--user", "login", help="Log in as this user.")
@click.option("--password", "login_password", help="With this password, which others can see in a list of processes.")
@click.option("--ask-password", is_flag=True, help="Read the password from standard input.")
@click.option("--password-command", help="A command that prints the password.")
@click.option("--token-command", help="A command that prints a token, which is used instead of a password.")
@click.option("--cacert", help="Trust these certificates, for https.")
@click.option("-p", "--vhost", help="The virtual host of verbs without -p.")
def add(
    output: Output,
    name: str,
    url: str | None,
    login: str | None,
    login_password: str | None,
    ask_password: bool,
    password_command: str | None,
    token_command: str | None,
    cacert: str | None,
    vhost: str | None,
) -> None:
    """Add a profile. Only the user may read the file."""
    output.announce(f'Adding profile "{name}" to {profile_file()} ...')
    if url is None:
        raise WrongUsage("a profile needs the address of its broker: --url")
    ApiAddress.parse(url)
    if sum((ask_password, *map(bool, (login_password, password_command, token_command)))) > 1:
        raise WrongUsage("give one of --password, --ask-password, --password-command and --token-command")
    password = given_password(None) if ask_password else login_password
    values = Profile(
        url=url,
        user=login or "",
        password=password or "",
        password_command=password_command or "",
        token_command=token_command or "",
        ca=cacert or "",
        vhost=vhost or "",
    )
    add_profile(name, values)


@_local
@click.argument("name")
def remove(output: Output, name: str) -> None:
    """Remove a profile."""
    output.announce(f'Removing profile "{name}" from {profile_file()} ...')
    remove_profile(name)


@_local
@click.argument("name")
def use(output: Output, name: str) -> None:
    """Make a profile the default, for command lines that name no broker."""
    output.announce(f'Using profile "{name}" by default ...')
    use_profile(name)


for _command in (list_, add, remove, use):
    profile.add_command(_command)

VERBS = (profile,)
