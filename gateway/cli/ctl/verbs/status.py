"""Verbs for the state of the node: status, version, listeners, feature flags."""

from collections.abc import Iterable, Iterator

import click

from gateway.cli.ctl.listeners import Listener, listeners_of
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, number, part, text
from gateway.cli.ctl.verb import verb
from gateway.version import VERSION

UNITS = {"bytes": 1, "MB": 10**6, "GB": 10**9, "M": 2**20, "G": 2**30}
ALARMS = {"mem_alarm": "memory", "disk_free_alarm": "disk"}


@verb
@click.option(
    "--unit", type=click.Choice(list(UNITS)), default="GB", show_default=True, help="Unit of memory and disk sizes."
)
def status(session: VerbSession, unit: str) -> None:
    """Print the node's status: version, uptime, alarms, memory, files, disk space, totals, listeners."""
    overview = session.api.get("overview")
    name = text(overview, "node")
    node = session.api.get("nodes", name)
    vhosts = len(list(session.api.list("vhosts")))
    session.output.announce(f"Status of node {name} ...")
    if session.output.formatter == "json":
        session.output.value(_as_json(overview, node, vhosts))
    else:
        session.output.text("\n".join(_lines(overview, node, vhosts, unit)))


@verb
def listeners(session: VerbSession) -> None:
    """Print the listeners."""
    overview = session.api.get("overview")
    found = listeners_of(overview)
    session.output.announce(f"Asking node {text(overview, 'node')} to report its protocol listeners ...")
    if session.output.formatter == "table":
        session.output.text("\n".join(map(str, found)))
    else:
        session.output.rows(("interface", "port", "protocol", "purpose"), [each.as_json() for each in found])


@verb
def server_version(session: VerbSession) -> None:
    """Print the version of the broker."""
    overview = session.api.get("overview")
    session.output.announce(f"Asking node {text(overview, 'node')} for its version...")
    session.output.text(_version(overview))


@verb
def list_feature_flags(session: VerbSession) -> None:
    """List the feature flags and their states."""
    session.output.announce("Listing feature flags ...")
    session.output.rows(("name", "state"), session.api.list("feature-flags"))


@verb
def version(session: VerbSession) -> None:
    """Print the version of gatewayctl."""
    session.output.text(VERSION)


def _as_json(overview: Json, node: Json, vhosts: int) -> JsonObject:
    """Return the fields of rabbitmqctl's status that apply to this broker."""
    alarms: list[Json] = list(alarm_lines(node))
    listening: list[Json] = [listener.as_json() for listener in listeners_of(overview)]
    return {
        "pid": part(node, "os_pid"),
        "uptime": number(node, "uptime") // 1000,
        "rabbitmq_version": part(overview, "rabbitmq_version"),
        "product_name": part(overview, "product_name"),
        "product_version": part(overview, "product_version"),
        "node": part(overview, "node"),
        "active_plugins": part(node, "enabled_plugins"),
        "data_directory": part(node, "db_dir"),
        "config_files": part(node, "config_files"),
        "log_files": part(node, "log_files"),
        "alarms": alarms,
        "is_under_maintenance": part(node, "being_drained") is True,
        "contained_faults": {**_faults(node)},
        "gc_longest_pause_ms": part(node, "gc_longest_pause_ms"),
        "turns": part(node, "turns"),
        "memory": {"used": part(node, "mem_used")},
        "vm_memory_high_watermark_limit": part(node, "mem_limit"),
        "disk_free": part(node, "disk_free"),
        "disk_free_limit": part(node, "disk_free_limit"),
        "file_descriptors": {
            "total_limit": part(node, "fd_total"),
            "total_used": part(node, "fd_used"),
            "sockets_limit": part(node, "sockets_total"),
            "sockets_used": part(node, "sockets_used"),
        },
        "totals": _totals(overview, vhosts),
        "records_set_aside": part(overview, "set_aside"),
        "listeners": listening,
    }


def _turns(node: Json) -> Iterator[str]:
    """Yield the durations of event loop turns, which delay other clients."""
    turns = part(node, "turns")
    if turns:
        for when, p99, longest in (("recent", "p99_recent_ms", "longest_recent_ms"), ("all", "p99_ms", "longest_ms")):
            yield f"Turns, {when} (ms): p99 {part(turns, p99)}, longest {part(turns, longest)}"
        if part(turns, "longest_cause"):
            yield f"Cause of the longest turn: {text(turns, 'longest_cause')}"


def _lines(overview: Json, node: Json, vhosts: int, unit: str) -> Iterator[str]:
    """Yield the sections of rabbitmqctl's status, without those about Erlang."""
    yield from _section(
        "Runtime",
        [
            f"OS PID: {part(node, 'os_pid')}",
            f"Uptime (seconds): {number(node, 'uptime') // 1000}",
            f"Is under maintenance?: {'true' if part(node, 'being_drained') is True else 'false'}",
            *_versions(overview),
            f"Node name: {text(overview, 'node')}",
            f"Contained faults: {sum(_faults(node).values())}",
            f"Longest garbage collection (ms): {part(node, 'gc_longest_pause_ms') or 0}",
            *_turns(node),
        ],
    )
    yield from _section("Plugins", _items(part(node, "enabled_plugins")))
    yield from _section("Data directory", [f"Node data directory: {text(node, 'db_dir')}"])
    yield from _section("Config files", _items(part(node, "config_files")))
    yield from _section("Log file(s)", _items(part(node, "log_files")))
    yield from _section("Alarms", _items(list(alarm_lines(node))))
    used, watermark = _size(node, "mem_used", unit), _size(node, "mem_limit", unit)
    yield from _section("Memory", [f"Total memory used: {used}", f"Memory high watermark: {watermark}"])
    yield from _section(
        "File Descriptors",
        [
            f"Total: {number(node, 'fd_used')}, limit: {number(node, 'fd_total')}",
            f"Sockets: {number(node, 'sockets_used')}, limit: {number(node, 'sockets_total')}",
        ],
    )
    low, free = _size(node, "disk_free_limit", unit), _size(node, "disk_free", unit)
    yield from _section("Free Disk Space", [f"Low free disk space watermark: {low}", f"Free disk space: {free}"])
    totals = [f"{name.replace('_', ' ').capitalize()}: {total}" for name, total in _totals(overview, vhosts).items()]
    yield from _section("Totals", totals)
    if part(overview, "set_aside") is not None:
        yield from _section("Store", [f"Records set aside: {number(overview, 'set_aside')}"])
    listening: list[Listener] = listeners_of(overview)
    yield from [click.style("Listeners", bold=True), "", *map(str, listening)]


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from [click.style(title, bold=True), "", *lines, ""]


def _items(values: Json) -> list[str]:
    found = values if isinstance(values, list) else []
    return [f" * {value}" for value in found] or ["(none)"]


def _faults(node: Json) -> dict[str, int]:
    """Return the number of contained exceptions by the operation that failed."""
    counts = part(node, "contained_faults")
    found = counts.items() if isinstance(counts, dict) else ()
    return {str(kind): count for kind, count in found if isinstance(count, int)}


def alarm_lines(node: Json) -> Iterator[str]:
    """Yield a line for each alarm of the node."""
    return (f"{what} alarm on node {text(node, 'name')}" for key, what in ALARMS.items() if part(node, key) is True)


def _totals(overview: Json, vhosts: int) -> JsonObject:
    return {
        "connection_count": number(overview, "object_totals", "connections"),
        "queue_count": number(overview, "object_totals", "queues"),
        "virtual_host_count": vhosts,
    }


def _size(node: Json, name: str, unit: str) -> str:
    value = part(node, name)
    if not isinstance(value, int):
        return "unknown"
    return f"{round(value / UNITS[unit], 4)} {unit.lower() if unit == 'GB' else unit}"


def _versions(overview: Json) -> Iterator[str]:
    """Yield the product's own version, if it is not RabbitMQ, and the compatible RabbitMQ version."""
    if text(overview, "product_name") not in ("", "RabbitMQ"):
        yield f"{text(overview, 'product_name')} version: {text(overview, 'product_version')}"
    yield f"RabbitMQ version: {text(overview, 'rabbitmq_version')}"


def _version(overview: Json) -> str:
    return text(overview, "product_version") or text(overview, "rabbitmq_version")


VERBS = (status, version, server_version, listeners, list_feature_flags)
