"""Verbs that plugins add: ``gatewayctl PLUGIN VERB ARGUMENT...``. The broker describes them; no code is loaded."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

import click

from gateway.cli.ctl.errors import CommandFailed, NoSuchVirtualHost, UnknownEntity, WrongUsage
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, compact, objects, part, text
from gateway.cli.ctl.verb import verb

_PREFIX: Final = "/api/"

_HELP: Final = ("-h", "--help")

_TYPES: Final[Mapping[str, click.ParamType[Any]]] = {
    "text": click.STRING,
    "integer": click.INT,
    "number": click.FLOAT,
    "boolean": click.BOOL,
}


@verb
@click.argument("name", required=False)
def verbs(session: VerbSession, name: str | None) -> None:
    """List the verbs that plugins add in a virtual host, or those of one plugin."""
    found = _described(session, name)
    session.output.announce(f'Listing verbs of plugins for vhost "{session.vhost}" ...')
    rows = [
        {"plugin": text(each, "plugin"), "usage": _usage(each), "description": text(each, "description")}
        for each in found
    ]
    session.output.rows(("plugin", "usage", "description"), rows)


@verb
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="NAME VERB [ARGUMENT]...")
def call(session: VerbSession, words: tuple[str, ...]) -> None:
    """Call a verb of a plugin; also: gatewayctl NAME VERB. The verb's options follow it."""
    name, *rest = words
    if name in _HELP:
        session.output.text(click.get_current_context().get_help())
        return
    found = _described(session, name)
    if not found:
        raise WrongUsage(f"plugin '{name}' adds no verbs in vhost '{session.vhost}'")
    _call(session, name, found, rest)


def shorthand(name: str, unknown: CommandFailed) -> click.Command:
    """Return the command ``gatewayctl NAME``. It raises ``unknown`` if no plugin of this name adds verbs."""

    @click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[VERB [ARGUMENT]...]")
    def run(session: VerbSession, words: tuple[str, ...]) -> None:
        try:
            found = _described(session, name)
        except NoSuchVirtualHost:
            raise
        except CommandFailed:
            raise unknown from None
        if not found:
            raise unknown
        _call(session, name, found, words)

    return _passing_options(verb(run))


def _passing_options(command: click.Command) -> click.Command:
    """Let the words of a command contain options that it does not know, and ``--help``."""
    command.context_settings = {"ignore_unknown_options": True, "help_option_names": []}
    return command


def _call(session: VerbSession, name: str, found: Sequence[JsonObject], words: Sequence[str]) -> None:
    """Parse the words after a plugin's name, call the resource of the verb, and print its answer."""
    asked = words[0] if words else ""
    if not words or asked in _HELP:
        for each in found:
            session.output.text(f"gatewayctl {_usage(each)}  {text(each, 'description')}".rstrip())
        return
    described = next((each for each in found if text(each, "name") == asked), None)
    if described is None:
        offered = ", ".join(text(each, "name") for each in found)
        raise WrongUsage(f"plugin '{name}' has no verb '{asked}'; it has {offered}")
    given = _parsed(described, words[1:])
    _print(session, described, _answer(session, described, given))


def _described(session: VerbSession, name: str | None) -> list[JsonObject]:
    """Return the verbs that plugins add in the virtual host, or those of one plugin; none for another broker.

    :raises NoSuchVirtualHost: if the virtual host does not exist.
    """
    try:
        found = session.api.list("ctl-verbs", session.vhost)
    except UnknownEntity:
        session.require_vhost()
        return []
    return [each for each in found if name is None or text(each, "plugin") == name]


def _parsed(described: JsonObject, words: Sequence[str]) -> dict[str, Json]:
    """Return the arguments of a verb by name. :raises click.UsageError: if they are wrong."""
    arguments = objects(part(described, "arguments"))
    command = click.Command(
        text(described, "name"),
        params=[_parameter(argument) for argument in arguments],
        help=text(described, "description"),
        context_settings={"help_option_names": [*_HELP]},
    )
    prefix = f"gatewayctl {text(described, 'plugin')} {text(described, 'name')}"
    context = command.make_context(prefix, list(words))
    names = [text(argument, "name") for argument in arguments]
    given = {name: context.params[name.replace("-", "_")] for name in names}
    return {name: value for name, value in given.items() if value is not None}


def _parameter(argument: JsonObject) -> click.Parameter:
    name, values = text(argument, "name"), part(argument, "values")
    choices = [str(value) for value in values] if isinstance(values, list) else []
    kind = click.Choice(choices) if choices else _TYPES.get(text(argument, "type"), click.STRING)
    is_required = part(argument, "is_required") is True
    if part(argument, "is_option") is True:
        return click.Option([f"--{name}"], required=is_required, type=kind, help=text(argument, "description"))
    return click.Argument([name.replace("-", "_")], required=is_required, type=kind, metavar=name.upper())


def _answer(session: VerbSession, described: JsonObject, given: Mapping[str, Json]) -> bytes:
    """Call the resource of a verb."""
    rest, path = dict(given), []
    for segment in text(described, "path").removeprefix(_PREFIX).split("/"):
        is_variable = segment.startswith("{") and segment.endswith("}")
        path.append(_shown(rest.pop(segment[1:-1], "")) if is_variable else unquote(segment))
    method = text(described, "method")
    if method in ("GET", "DELETE"):
        return session.api.call(method, *path, query={name: _shown(value) for name, value in rest.items()})
    return session.api.call(method, *path, body=json.dumps(rest).encode())


def _print(session: VerbSession, described: JsonObject, answer: bytes) -> None:
    """Print what a resource returned: rows, one object, or text."""
    try:
        value: Json = json.loads(answer) if answer else None
    except ValueError:
        session.output.text(answer.decode(errors="replace").rstrip("\n"))
        return
    columns = [str(column) for column in _items(part(described, "columns"))]
    if isinstance(value, list) and len(objects(value)) == len(value):
        rows = objects(value)
        session.output.rows(columns or list(rows[0] if rows else {}), rows)
    elif isinstance(value, dict) and session.output.formatter != "json":
        chosen = {name: value.get(name) for name in columns} if columns else value
        session.output.rows(("name", "value"), [{"name": name, "value": each} for name, each in chosen.items()])
    elif value is not None:
        for each in value if isinstance(value, list) and session.output.formatter != "json" else [value]:
            session.output.text(each if isinstance(each, str) else compact(each))


def _usage(described: JsonObject) -> str:
    words = [text(described, "plugin"), text(described, "name")]
    for argument in objects(part(described, "arguments")):
        name = text(argument, "name")
        shown = f"--{name} VALUE" if part(argument, "is_option") is True else name.upper()
        words.append(shown if part(argument, "is_required") is True else f"[{shown}]")
    return " ".join(words)


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else compact(value)


def _items(value: Json) -> Iterable[Json]:
    return value if isinstance(value, list) else ()


_passing_options(call)
COMMANDS: Final[Mapping[str, click.Command]] = {"verbs": verbs, "call": call}
