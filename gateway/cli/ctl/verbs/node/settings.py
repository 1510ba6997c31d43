"""Verbs for the settings of a running node. Changes last until it stops."""

import re
from typing import Final

import click

from gateway.cli.ctl.errors import CommandFailed, Declined, UnknownEntity, WrongData
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, compact, number, objects, parse_json, part, text
from gateway.cli.ctl.verb import verb

UNTIL_RESTART: Final = "The change takes effect at once and does not survive a restart."

#: Units without a byte, which are binary in RabbitMQ: ``2G`` and ``2Gi``.
_BINARY: Final = re.compile(r"(\d+) ?([kMGT])i?")

#: RabbitMQ's levels of the log, and those of this broker.
LEVELS: Final = {
    **{level: level for level in ("debug", "info", "warning", "error")},
    "notice": "info",
    "critical": "error",
    "alert": "error",
    "emergency": "error",
    "none": "error",
}


@verb
@click.argument("limit", nargs=-1, required=True, metavar="FRACTION|absolute SIZE")
def set_vm_memory_high_watermark(session: VerbSession, limit: tuple[str, ...]) -> None:
    """Set the memory use above which publishers are blocked, until the node stops.

    FRACTION is a share of the machine's memory, such as 0.4; SIZE is bytes or a size such as 2GB.
    """
    node = session.node()
    if len(limit) == 2 and limit[0] == "absolute":
        size = _size(limit[1])
        session.output.announce(f"Setting memory threshold on {node} to {limit[1]} bytes ...")
        _change(session, "memory_high_watermark", size)
    elif len(limit) == 1:
        session.output.announce(f"Setting memory threshold on {node} to {limit[0]} ...")
        _change(session, "memory_high_watermark", _fraction(limit[0], "The threshold"))
    else:
        raise WrongData("give a fraction, such as 0.4, or absolute and a size, such as absolute 2GB")


@verb
@click.argument("limit", nargs=-1, required=True, metavar="SIZE|mem_relative FRACTION")
def set_disk_free_limit(session: VerbSession, limit: tuple[str, ...]) -> None:
    """Set the free disk space below which publishers are blocked, until the node stops.

    SIZE is bytes or a size such as 2GB; FRACTION is a multiple of the machine's memory, such as 1.5.
    """
    node = session.node()
    if len(limit) == 2 and limit[0] == "mem_relative":
        fraction = _fraction(limit[1], "The limit", most=1e6)
        session.output.announce(f"Setting disk free limit on {node} to {limit[1]} times the total RAM ...")
        _change(session, "disk_free_limit", int(fraction * number(session.api.get("nodes", node), "mem_total")))
    elif len(limit) == 1:
        size = _size(limit[0])
        session.output.announce(f"Setting disk free limit on {node} to {limit[0]} bytes ...")
        _change(session, "disk_free_limit", size)
    else:
        raise WrongData("give a size, such as 2GB, or mem_relative and a fraction, such as mem_relative 1.5")


@verb
@click.argument("level")
def set_log_level(session: VerbSession, level: str) -> None:
    """Set the lowest level that the log has, until the node stops: debug, info, warning or error."""
    if level not in LEVELS:
        raise Declined(f"level {level} is not supported. Try one of debug, info, warning, error, critical, none")
    session.output.announce(f'Setting log level to "{level}" ...')
    if LEVELS[level] != level:
        session.output.announce(f'The nearest level of this broker is "{LEVELS[level]}".')
    _change(session, "log.level", LEVELS[level])


@verb
@click.argument("key")
@click.argument("value")
def set_setting(session: VerbSession, key: str, value: str) -> None:
    """Set any setting that a reload applies, until the node stops; rabbitmqctl has no such verb.

    KEY is dotted, as in amqp.heartbeat_s. VALUE is JSON, or a string.
    """
    session.output.announce(f"Setting {key} to {value} ...")
    _change(session, key, _parsed(value))


@verb
@click.argument("key")
def clear_setting(session: VerbSession, key: str) -> None:
    """Restore the configured value of a setting that was changed while the node runs."""
    session.output.announce(f"Restoring {key} ...")
    with session.on_not_found(Declined(f"{key} was not changed since the start")):
        session.api.delete("settings", key)


@verb
@click.argument("pattern", required=False)
def environment(session: VerbSession, pattern: str | None) -> None:
    """Print the settings in effect with their origins. With PATTERN, those whose key contains it."""
    session.output.announce(f"Settings in effect on node {session.node()} ...")
    with session.controlling():
        found = objects(part(session.api.get("settings"), "settings"))
    rows = [row for row in found if pattern is None or pattern in text(row, "key")]
    if session.output.formatter == "json":
        session.output.rows(("key", "value", "default", "origin", "needs_restart", "configured"), rows)
        return
    shown: list[JsonObject] = [
        {"key": row["key"], "value": compact(part(row, "value")), "origin": _origin(row)} for row in rows
    ]
    session.output.rows(("key", "value", "origin"), shown)


@verb
def reload(session: VerbSession) -> None:
    """Read the configuration and the certificates again, without a disconnect, as SIGHUP does."""
    session.output.announce(f"Reloading the configuration of node {session.node()} ...")
    with session.controlling():
        found = session.api.ask("reload", body={})
    if session.output.formatter == "json":
        session.output.value(found)
        return
    for title, name in (
        ("Applied", "applied"),
        ("Needs a restart", "needs_restart"),
        ("Kept as changed at run time", "kept"),
    ):
        keys = part(found, name)
        session.output.text(f"{title}: {', '.join(map(str, keys)) if isinstance(keys, list) and keys else '(none)'}")
    session.output.text(f"Certificates read: {number(found, 'certificates')}")


def _change(session: VerbSession, key: str, value: Json) -> None:
    try:
        session.api.put("settings", key, body={"value": value})
    except UnknownEntity:
        raise Declined(f"the broker at {session.api.address.url} cannot do this over its API") from None
    session.output.announce(UNTIL_RESTART)


def _parsed(value: str) -> Json:
    """Parse JSON; other text is a string."""
    try:
        return parse_json(value)
    except CommandFailed:
        return value


def _fraction(given: str, what: str, most: float = 1.0) -> float:
    try:
        fraction = float(given)
    except ValueError:
        raise WrongData(f"'{given}' is not a number") from None
    if not 0 <= fraction <= most:
        raise WrongData(f"{what} should be a fraction between 0.0 and {most}")
    return fraction


def _size(given: str) -> int:
    """Parse a size as RabbitMQ writes it, too: ``2GB``, ``2G``, ``2GiB``."""
    from gateway.config.kinds import parse_size  # with the settings, which other verbs do not need

    binary = _BINARY.fullmatch(given)
    written = f"{binary[1]}{binary[2]}iB" if binary else given
    try:
        return parse_size(int(written) if written.isdigit() else written)
    except ValueError:
        raise WrongData(
            f"'{given}' is not a size: bytes, or a number with kB, MB, GB, TB, KiB, MiB, GiB, TiB"
        ) from None


def _origin(row: JsonObject) -> str:
    origin = text(row, "origin")
    if part(row, "needs_restart"):
        return f"{origin}; {compact(part(row, 'configured'))} after a restart"
    return origin


VERBS = (
    set_vm_memory_high_watermark,
    set_disk_free_limit,
    set_log_level,
    set_setting,
    clear_setting,
    environment,
    reload,
)
