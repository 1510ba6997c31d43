"""``gatewayctl plugin``: the plugins of a virtual host, while the broker runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from gateway.cli.ctl.errors import Declined, UnknownEntity, WrongUsage
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, parse_object, part, text
from gateway.cli.ctl.verb import verb
from gateway.cli.ctl.verbs import plugin_verbs

#: Plugins of RabbitMQ whose work is done otherwise, and how.
ELSEWHERE: Final[Mapping[str, str]] = {
    "rabbitmq_management": "it is built in; its port is the setting management.port",
    "rabbitmq_management_agent": "it is built in",
    "rabbitmq_prometheus": "metrics are part of the management API",
    "rabbitmq_mqtt": "MQTT is built in; its port is the setting mqtt.port",
    "rabbitmq_web_mqtt": "it is built in; its port is the setting web_mqtt.port",
    "rabbitmq_stomp": "STOMP is built in; its port is the setting stomp.port",
    "rabbitmq_web_stomp": "it is built in; its port is the setting web_stomp.port",
    "rabbitmq_stream": "streams are built in; declare a queue with x-queue-type stream",
    "rabbitmq_tracing": "use gatewayctl trace_on",
}


@click.group("plugin")
def plugin() -> None:
    """List, enable, disable, reload and roll back the plugins of a virtual host."""


@verb
@click.option("-e", "--enabled", "only_enabled", is_flag=True, help="Only enabled plugins.")
def list_plugins(session: VerbSession, only_enabled: bool) -> None:
    """List the plugins with their state in a virtual host."""
    session.output.announce(f'Listing plugins for vhost "{session.vhost}" ...')
    columns = ("name", "state", "version", "set_by", "faults", "longest_us", "reason")
    found = session.api.list("plugins", session.vhost)
    rows = [row for row in found if not only_enabled or part(row, "state") == "enabled"]
    shown = [{**row, "longest_us": _longest_us(row)} for row in rows]
    session.output.rows(columns, [{column: part(row, column) for column in columns} for row in shown])


def _longest_us(row: JsonObject) -> Json:
    """Return the longest measured call of a plugin in microseconds; ``None`` if none was measured."""
    times = part(row, "times")
    measured = [part(time, "longest_us") for time in times] if isinstance(times, list) else []
    return max([each for each in measured if isinstance(each, int | float)], default=None)


@verb
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--settings", help="The settings as a JSON object.")
def enable(session: VerbSession, names: tuple[str, ...], settings: str | None) -> None:
    """Enable plugins in a virtual host."""
    given = None if settings is None else parse_object(settings, "--settings")
    for name in names:
        _require_here(name)
        session.output.announce(f'Enabling plugin "{name}" for vhost "{session.vhost}" ...')
        if given is None:
            session.api.put_raw("plugins", session.vhost, name, body=b"")
        else:
            session.api.put("plugins", session.vhost, name, body=given)


@verb
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def disable(session: VerbSession, names: tuple[str, ...]) -> None:
    """Disable plugins in a virtual host; exchanges of their types keep their bindings and route nothing."""
    for name in names:
        _require_here(name)
        session.output.announce(f'Disabling plugin "{name}" for vhost "{session.vhost}" ...')
        session.api.delete("plugins", session.vhost, name)


@verb
@click.argument("name")
def reload(session: VerbSession, name: str) -> None:
    """Use the version that is in the plugin's file now."""
    session.output.announce(f'Reloading plugin "{name}" for vhost "{session.vhost}" ...')
    session.api.post("plugins", session.vhost, name, "reload", body=b"")


@verb
@click.argument("name")
def rollback(session: VerbSession, name: str) -> None:
    """Use the version before the last reload again."""
    session.output.announce(f'Rolling back plugin "{name}" for vhost "{session.vhost}" ...')
    session.api.post("plugins", session.vhost, name, "rollback", body=b"")


@verb
@click.argument("name")
@click.argument("values", required=False, metavar="[JSON]")
def settings(session: VerbSession, name: str, values: str | None) -> None:
    """Show the settings of a plugin in a virtual host, or replace them by a JSON object."""
    if values is None:
        session.output.value(part(_row(session, name), "settings"))
        return
    session.output.announce(f'Changing settings of plugin "{name}" for vhost "{session.vhost}" ...')
    if part(_row(session, name), "state") != "enabled":
        raise Declined(f"plugin '{name}' is not enabled in vhost '{session.vhost}'; use enable with --settings")
    session.api.put("plugins", session.vhost, name, body=parse_object(values, "the settings"))


@verb
@click.argument("name")
def describe(session: VerbSession, name: str) -> None:
    """Show what a plugin does, its hooks, and its settings with their allowed values."""
    found = next((row for row in session.api.list("plugins") if part(row, "name") == name), None)
    if found is None:
        raise UnknownEntity(f"plugin '{name}' was not found")
    for line in _description(found):
        session.output.text(line)


@verb
@click.argument("name")
def is_enabled(session: VerbSession, name: str) -> None:
    """Exit with 0 if a plugin is enabled in a virtual host, as rabbitmq-plugins does."""
    state = text(_row(session, name), "state")
    if state != "enabled":
        raise Declined(f"plugin '{name}' is {state} in vhost '{session.vhost}'")
    session.output.text(f"Plugin {name} is enabled in vhost {session.vhost}")


@verb
@click.argument("name")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def upload(session: VerbSession, name: str, file: Path) -> None:
    """Write a plugin file into plugins_dir, if plugins.allow_upload is set; then enable or reload it."""
    session.output.announce(f'Uploading plugin "{name}" ...')
    session.api.put_raw("plugin-files", name, body=file.read_bytes())


@verb
def directories(session: VerbSession) -> None:
    """Answer a verb of rabbitmq-plugins."""
    raise WrongUsage("the setting plugins_dir is the directory of plugin files; plugin describe NAME shows the source")


@verb
@click.argument("names", nargs=-1)
def set_(session: VerbSession, names: tuple[str, ...]) -> None:
    """Answer a verb of rabbitmq-plugins."""
    raise WrongUsage("plugins are enabled per virtual host: use plugin enable -p VHOST NAME and plugin disable NAME")


def _row(session: VerbSession, name: str) -> JsonObject:
    for row in session.api.list("plugins", session.vhost):
        if part(row, "name") == name:
            return row
    raise UnknownEntity(f"plugin '{name}' was not found")


def _require_here(name: str) -> None:
    if name in ELSEWHERE:
        raise WrongUsage(f"plugin '{name}' of RabbitMQ is not needed: {ELSEWHERE[name]}")


def _description(found: JsonObject) -> list[str]:
    """Return the lines of a description."""
    if part(found, "broken"):
        return [f"{text(found, 'name')}: broken: {text(found, 'broken')}"]
    lines = [f"{text(found, 'name')}: {text(found, 'description')}", f"Source: {text(found, 'source')}"]
    lines.append(f"Hooks: {_joined(part(found, 'hooks'))}")
    lines.append(f"Enabled in: {_joined(part(found, 'vhosts')) or 'no virtual host'}")
    rows = part(found, "settings")
    if not isinstance(rows, list) or not rows:
        takes = part(found, "takes_settings") is True
        return [*lines, "Settings: not described by the plugin" if takes else "Settings: none"]
    lines.append("Settings:")
    for row in rows:
        default = f"default {part(row, 'default')!r}" if isinstance(row, dict) and "default" in row else "required"
        lines.append(f"  {text(row, 'name')}: {text(row, 'allowed')}; {default}. {text(row, 'description')}".rstrip())
    return lines


def _joined(values: Json) -> str:
    return ", ".join(map(str, values)) if isinstance(values, list) else ""


for _name, _command in (
    ("list", list_plugins), ("enable", enable), ("disable", disable), ("reload", reload), ("rollback", rollback),
    ("settings", settings), ("describe", describe), ("is_enabled", is_enabled), ("upload", upload),
    ("directories", directories), ("set", set_), *plugin_verbs.COMMANDS.items(),
):  # fmt: skip
    plugin.add_command(_command, _name)

VERBS = (plugin,)
