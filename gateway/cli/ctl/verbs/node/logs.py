"""Verbs for the log and the events of the node."""

import re
import time
from collections.abc import Iterable, Sequence

import click

from gateway.cli.ctl.errors import WrongUsage
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import part, text
from gateway.cli.ctl.verb import FOREVER_S, Seconds, verb

DURATION = click.option(
    "-d", "--duration", type=Seconds(), default="infinity", show_default=True, help="Length of the stream, in seconds."
)


@verb
@click.option("-a", "--all", "every", is_flag=True, help="Accepted for compatibility: all are printed.")
def log_location(session: VerbSession, every: bool) -> None:
    """Print where the log is written: a file, or <stderr>."""
    session.output.announce(f"Log file location(s) on node {session.node()} ...")
    with session.controlling():
        files = part(session.api.get("log", query={"lines": "1"}), "files")
    _print_lines(session, files if isinstance(files, list) else [])


@verb
@click.option("-N", "--number", "count", type=click.IntRange(min=1), default=50, show_default=True, help="Lines.")
def log_tail(session: VerbSession, count: int) -> None:
    """Print the last lines of the log, of those since the start: at most 1000 are kept."""
    session.output.announce(f"Last {count} log lines on node {session.node()} ...")
    with session.controlling():
        lines = part(session.api.get("log", query={"lines": str(count)}), "lines")
    _print_lines(session, lines if isinstance(lines, list) else [])


@verb
@DURATION
def log_tail_stream(session: VerbSession, duration: float) -> None:
    """Print log lines as they are written, until Ctrl-C or for --duration seconds."""
    length = "" if duration >= FOREVER_S else f" for {duration:.0f} seconds"
    session.output.announce(f"Streaming logs from node {session.node()}{length} ...")
    _print_stream(session, session.api.lines("log", "stream", query=_query(duration)), duration)


@verb
def rotate_logs(session: VerbSession) -> None:
    """Rename the log file to FILE.1, older ones to FILE.2 and so on, and begin a new one."""
    session.output.announce(f"Rotating the log of node {session.node()} ...")
    with session.controlling():
        found = session.api.ask("log", "rotate", body={})
    session.output.announce(f"{text(found, 'file')} is now {text(found, 'renamed')}")


@verb
@DURATION
@click.option("--pattern", default=".*", help="Only events whose name matches this regular expression.")
def consume_event_stream(session: VerbSession, duration: float, pattern: str) -> None:
    """Print events as they happen, one JSON object a line, until Ctrl-C or for --duration seconds."""
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise WrongUsage(f"--pattern: {pattern!r} is not a regular expression: {error}") from None
    found = session.api.lines("events", "stream", query=_query(duration))
    _print_stream(session, (line for line in found if wanted.search(_event_name(line))), duration)


def _query(duration: float) -> dict[str, str]:
    return {"duration": "infinity" if duration >= FOREVER_S else str(max(1, round(duration)))}


def _print_stream(session: VerbSession, lines: Iterable[str], duration: float) -> None:
    """Print lines at once, for programs that read them too; the broker ends the stream."""
    ends_s = time.monotonic() + duration
    with session.controlling():
        for line in lines:
            click.echo(line)
            if time.monotonic() > ends_s + 1:
                return


def _event_name(line: str) -> str:
    found = re.search(r'"event":"([^"]*)"', line)
    return found[1] if found else ""


def _print_lines(session: VerbSession, lines: Sequence[object]) -> None:
    if session.output.formatter == "json":
        session.output.value([str(line) for line in lines])
        return
    for line in lines:
        session.output.text(str(line))


VERBS = (log_location, log_tail, log_tail_stream, rotate_logs, consume_event_stream)
