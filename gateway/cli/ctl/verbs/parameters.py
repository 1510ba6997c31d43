"""Verbs for runtime parameters, of a virtual host and global."""

import click

from gateway.cli.ctl.errors import Declined, NoSuchVirtualHost
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import JsonObject, compact, parse_json, part, text
from gateway.cli.ctl.verb import verb


@verb
@click.argument("component")
@click.argument("name")
@click.argument("value")
def set_parameter(session: VerbSession, component: str, name: str, value: str) -> None:
    """Set a parameter of a COMPONENT to a JSON VALUE."""
    shown = _without_passwords(value)
    session.output.announce(
        f'Setting runtime parameter "{name}" for component "{component}" to "{shown}" in vhost "{session.vhost}" ...'
    )
    body: JsonObject = {"component": component, "vhost": session.vhost, "name": name, "value": parse_json(value)}
    with session.on_not_found(NoSuchVirtualHost(session.vhost)):
        session.api.put("parameters", component, session.vhost, name, body=body)


@verb
@click.argument("component")
@click.argument("name")
def clear_parameter(session: VerbSession, component: str, name: str) -> None:
    """Remove a parameter."""
    session.output.announce(
        f'Clearing runtime parameter "{name}" for component "{component}" on vhost "{session.vhost}" ...'
    )
    with session.reporting_missing(f"parameter '{name}' of component '{component}'"):
        session.api.delete("parameters", component, session.vhost, name)


@verb
def list_parameters(session: VerbSession) -> None:
    """List the parameters of a virtual host."""
    session.output.announce(f'Listing runtime parameters for vhost "{session.vhost}" ...')
    session.require_vhost()
    found = [each for each in session.api.list("parameters") if text(each, "vhost") == session.vhost]
    session.announce_without_effect("parameter", found)
    session.output.rows(("component", "name", "value"), map(_row, found))


@verb
@click.argument("name")
@click.argument("value")
def set_global_parameter(session: VerbSession, name: str, value: str) -> None:
    """Set a global parameter to a JSON VALUE."""
    session.output.announce(f'Setting global runtime parameter "{name}" to "{_without_passwords(value)}" ...')
    session.api.put("global-parameters", name, body={"name": name, "value": parse_json(value)})


@verb
@click.argument("name")
def clear_global_parameter(session: VerbSession, name: str) -> None:
    """Remove a global parameter."""
    session.output.announce(f'Clearing global runtime parameter "{name}" ...')
    with session.on_not_found(Declined(f"global parameter '{name}' does not exist")):
        session.api.delete("global-parameters", name)


@verb
def list_global_parameters(session: VerbSession) -> None:
    """List the global parameters."""
    session.output.announce("Listing global runtime parameters ...")
    session.output.rows(("name", "value"), map(_row, session.api.list("global-parameters")))


def _without_passwords(value: str) -> str:
    """Return a value for the terminal, which often is a log: passwords in URIs are replaced."""
    if "@" not in value:
        return value
    from gateway.definitions.secrets import shown_text  # imported here because definitions are slow to import

    return shown_text(value)


def _row(parameter: JsonObject) -> JsonObject:
    """Return a parameter with its value as JSON text, as rabbitmqctl shows it in every format."""
    return {**parameter, "value": compact(part(parameter, "value"))}


VERBS = (
    set_parameter,
    clear_parameter,
    list_parameters,
    set_global_parameter,
    clear_global_parameter,
    list_global_parameters,
)
