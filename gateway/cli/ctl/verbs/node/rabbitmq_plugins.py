"""Verbs of rabbitmq-plugins: the plugins of a virtual host, and RabbitMQ's plugins whose work the broker does."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import click

from gateway.cli.ctl.errors import Declined, UnknownEntity, WrongUsage
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, part, text
from gateway.cli.ctl.verb import verb
from gateway.cli.ctl.verbs.plugins import ELSEWHERE

names_argument = click.argument("names", nargs=-1, required=True, metavar="NAME...")

_MODE: Final = (
    click.option("--online", is_flag=True, help="Accepted for compatibility: the broker must run."),
    click.option("--offline", is_flag=True, help="Accepted for compatibility: the broker must run."),
)


def with_mode(action: Callable[..., None]) -> Callable[..., None]:
    """Add the options ``--online`` and ``--offline``."""
    for option in _MODE:
        action = option(action)
    return action


@dataclass(frozen=True, slots=True)
class Known:
    """The plugins of the virtual host by name, and RabbitMQ's plugins whose work the broker does now."""

    rows: dict[str, JsonObject]
    built_in: frozenset[str]

    def is_enabled(self, name: str) -> bool:
        """Return whether a plugin is enabled. :raises Declined: if there is no such plugin."""
        if name in self.built_in:
            return True
        self.require(name)
        return name in self.rows and text(self.rows[name], "state") == "enabled"

    def require(self, name: str) -> None:
        """Require a plugin. :raises UnknownEntity: if it does not exist."""
        if name not in self.rows and name not in self.built_in and name not in ELSEWHERE:
            raise UnknownEntity(f"plugin '{name}' was not found")


def known(session: VerbSession) -> Known:
    """Return all plugins."""
    found = {text(row, "name"): row for row in session.api.list("plugins", session.vhost)}
    names = part(session.api.get("nodes", session.node()), "enabled_plugins")
    return Known(found, frozenset(map(str, names)) if isinstance(names, list) else frozenset())


@verb
@names_argument
@click.option("--all", "every", is_flag=True, hidden=True)
@with_mode
def enable(session: VerbSession, names: tuple[str, ...], every: bool, online: bool, offline: bool) -> None:
    """Enable plugins in a virtual host. A plugin of RabbitMQ that is built in is enabled already."""
    if every:
        raise WrongUsage("--all is not supported: name the plugins")
    session.output.announce(f"Enabling plugins in vhost {session.vhost}:\n" + "\n".join(names))
    _enable(session, known(session), names)


@verb
@names_argument
@with_mode
def disable(session: VerbSession, names: tuple[str, ...], online: bool, offline: bool) -> None:
    """Disable plugins in a virtual host; exchanges of their types keep their bindings and route nothing."""
    session.output.announce(f"Disabling plugins in vhost {session.vhost}:\n" + "\n".join(names))
    _disable(session, known(session), names)


@verb
@names_argument
@with_mode
def set_(session: VerbSession, names: tuple[str, ...], online: bool, offline: bool) -> None:
    """Enable these plugins in a virtual host, and disable all others that were enabled while the broker runs."""
    session.output.announce(f"Enabling plugins in vhost {session.vhost}:\n" + "\n".join(names))
    found = known(session)
    _enable(session, found, names)
    others = [
        name
        for name, row in found.rows.items()
        if name not in names and text(row, "state") == "enabled" and text(row, "set_by") == "virtual host"
    ]
    _disable(session, found, tuple(others))


@verb
@names_argument
@with_mode
def is_enabled(session: VerbSession, names: tuple[str, ...], online: bool, offline: bool) -> None:
    """Exit with 0 if all these plugins are enabled in a virtual host."""
    session.output.announce(f"Asking if plugins {', '.join(names)} are enabled in vhost {session.vhost}...")
    found = known(session)
    missing = [name for name in names if not found.is_enabled(name)]
    if missing:
        reasons = [f"Plugin {name} is not enabled in vhost {session.vhost}{_hint(name)}" for name in missing]
        raise Declined("; ".join(reasons))
    session.output.conclude("\n".join(f"Plugin {name} is enabled in vhost {session.vhost}" for name in names))


@verb
@click.argument("pattern", default=".*")
@click.option("-v", "--verbose", is_flag=True, help="Print versions, sources and reasons.")
@click.option("-m", "--minimal", is_flag=True, help="Print only the names.")
@click.option("-E", "--enabled", "only_explicit", is_flag=True, help="Only plugins that were enabled explicitly.")
@click.option("-e", "--implicitly-enabled", "only_enabled", is_flag=True, help="Only enabled plugins.")
def list_(
    session: VerbSession, pattern: str, verbose: bool, minimal: bool, only_explicit: bool, only_enabled: bool
) -> None:
    """List the plugins of a virtual host, and RabbitMQ's plugins that are built in, whose name matches PATTERN."""
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise WrongUsage(f"{pattern!r} is not a regular expression: {error}") from None
    session.output.announce(f'Listing plugins with pattern "{pattern}" ...')
    allowed = ("explicitly",) if only_explicit else ("explicitly", "implicitly") if only_enabled else None
    rows = [
        row
        for row in _listed(known(session))
        if wanted.search(text(row, "name")) and (allowed is None or row["enabled"] in allowed)
    ]
    if session.output.formatter == "json":
        session.output.value({"status": "running", "format": "minimal" if minimal else "normal", "plugins": [*rows]})
    elif session.output.formatter != "table" or verbose:
        session.output.rows(("name", "enabled", "running", "version", "reason"), rows)
    elif minimal:
        session.output.text("\n".join(text(row, "name") for row in rows))
    else:
        _print_boxes(session, rows)


@verb
@with_mode
def directories(session: VerbSession, online: bool, offline: bool) -> None:
    """Print the directory of plugin files."""
    session.output.announce(f"Listing plugin directories used by node {session.node()}")
    with session.controlling():
        found = session.api.get("settings", "plugins_dir")
    directory = text(found, "value") or "(none: the setting plugins_dir is empty)"
    if session.output.formatter == "json":
        session.output.value({"type": "online", "plugins_dir": text(found, "value")})
    else:
        session.output.text(f"Plugin archives directory: {directory}")
        session.output.text("Enabled plugins: in the configuration, and per virtual host in the store")


def _enable(session: VerbSession, found: Known, names: tuple[str, ...]) -> None:
    for name in names:
        found.require(name)
        if name in found.rows:
            session.api.put_raw("plugins", session.vhost, name, body=b"")
        elif name in found.built_in:
            session.output.announce(f"{name} is built in, and enabled.")
        else:
            raise Declined(f"plugin '{name}' of RabbitMQ is not installed here: {ELSEWHERE[name]}")


def _disable(session: VerbSession, found: Known, names: tuple[str, ...]) -> None:
    for name in names:
        found.require(name)
        if name in found.rows:
            session.api.delete("plugins", session.vhost, name)
        elif name in found.built_in:
            raise Declined(f"plugin '{name}' is built in and cannot be disabled{_hint(name)}")


def _hint(name: str) -> str:
    return f": {ELSEWHERE[name]}" if name in ELSEWHERE else ""


def _listed(found: Known) -> list[JsonObject]:
    rows: list[JsonObject] = [_row(name, "explicitly", True) for name in found.built_in]
    for name, row in found.rows.items():
        is_enabled = text(row, "state") == "enabled"
        how = "implicitly" if text(row, "set_by") == "always enabled" else "explicitly"
        listed = _row(name, how if is_enabled else "not_enabled", is_enabled)
        rows.append(listed | {"version": part(row, "version"), "reason": part(row, "reason")})
    return sorted(rows, key=lambda row: text(row, "name"))


def _row(name: str, enabled: Json, running: bool) -> JsonObject:
    return {"name": name, "enabled": enabled, "running": running, "version": None, "reason": None}


def _print_boxes(session: VerbSession, rows: list[JsonObject]) -> None:
    session.output.announce(" Configured: E = explicitly enabled; e = implicitly enabled")
    session.output.announce(f" | Status: * = running in vhost {session.vhost}\n |/")
    letters = {"explicitly": "E", "implicitly": "e"}
    for row in rows:
        state = letters.get(str(row["enabled"]), " ") + ("*" if row["running"] else " ")
        session.output.text(f"[{state}] {text(row, 'name')}")


VERBS = (enable, disable, set_, list_, is_enabled, directories)
