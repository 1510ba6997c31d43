"""Verbs that stop the node, and that wait for its start."""

import os
from collections.abc import Callable
from pathlib import Path

import click

from gateway.cli.ctl.errors import (
    BrokerFailed,
    BrokerUnreachable,
    CommandFailed,
    Declined,
    NotPermitted,
    UnknownEntity,
)
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import part
from gateway.cli.ctl.verb import verb
from gateway.cli.ctl.verbs.health import STARTUP_TIMEOUT_S
from gateway.cli.ctl.waiting import wait_until


@verb
@click.argument("pid_file", required=False, type=click.Path(path_type=Path))
@click.option("--idempotent", is_flag=True, help="Succeed if the broker does not run.")
def stop(session: VerbSession, pid_file: Path | None, idempotent: bool) -> None:
    """Stop the broker, as SIGTERM does. With PID_FILE, wait until its process ends."""
    session.output.announce(f"Stopping and halting the node at {session.api.address.url} ...")
    pid = None if pid_file is None else _pid_in(pid_file)
    if not _ask_to_stop(session, idempotent) or pid is None:
        return
    _wait(session, f"waiting for process {pid} to end", lambda: not _is_running(pid))


@verb
@click.option("--wait/--no-wait", "waits", default=True, help="Wait until it does not answer any more.")
def shutdown(session: VerbSession, waits: bool) -> None:
    """Stop the broker, and wait until it has stopped."""
    session.output.announce(f"Shutting down the node at {session.api.address.url} ...")
    _ask_to_stop(session, is_idempotent=False)
    if waits:
        _wait(session, "waiting for the broker to stop", lambda: not _answers(session))


@verb
@click.argument("pid_file", required=False, type=click.Path(path_type=Path))
@click.option("-P", "--pid", type=click.IntRange(min=1), help="The process of the broker, instead of a file.")
def wait(session: VerbSession, pid_file: Path | None, pid: int | None) -> None:
    """Wait until the broker has started, and fail at once if its process ends: the one of PID_FILE or --pid."""
    if (pid_file is None) == (pid is None):
        raise click.UsageError("give either the file of a process number or --pid")
    if pid_file is not None:
        session.output.announce(f"Waiting for pid file '{pid_file}' to appear")
        _wait(session, f"waiting for {pid_file}", pid_file.exists)
        pid = _pid_in(pid_file)
        session.output.announce(f"pid is {pid}")
    assert pid is not None
    process = pid

    def is_ready() -> bool:
        if not _is_running(process):
            raise BrokerFailed(f"process {process} is not running")
        return _is_started(session)

    session.output.announce(f"Waiting for the broker at {session.api.address.url} while process {pid} is running")
    _wait(session, f"waiting for {session.api.address.url}", is_ready)
    session.output.conclude(f"The broker at {session.api.address.url} is running")


@verb
@click.argument("count", type=click.IntRange(min=1))
def await_online_nodes(session: VerbSession, count: int) -> None:
    """Wait until COUNT nodes of the cluster are alive; a node that runs alone will never have others."""
    session.output.announce(f"Will wait for at least {count} nodes to join the cluster of {session.node()}.")
    if count == 1:
        return
    try:
        session.api.get("cluster")
    except UnknownEntity:
        raise BrokerFailed(f"this node runs alone: {count} nodes will never be online") from None

    def are_online() -> bool:
        return sum(part(node, "running") is True for node in session.api.list("nodes")) >= count

    _wait(session, f"waiting for {count} nodes", are_online)


def _ask_to_stop(session: VerbSession, is_idempotent: bool) -> bool:
    """Ask the broker to stop; return whether it runs. :raises CommandFailed: if it does not run, unless idempotent."""
    try:
        with session.controlling():
            session.api.ask("stop", body={})
    except BrokerUnreachable:
        if not is_idempotent:
            raise
        session.output.announce("The broker is not running.")
        return False
    return True


def _wait(session: VerbSession, text: str, is_done: Callable[[], bool]) -> None:
    """Wait until ``is_done``. :raises TimedOut: after five minutes, or ``--timeout``."""
    wait_until(session, text, is_done, default_s=STARTUP_TIMEOUT_S)


def _answers(session: VerbSession) -> bool:
    try:
        session.api.get("whoami")
    except BrokerUnreachable:
        return False
    except CommandFailed:
        return True
    return True


def _is_started(session: VerbSession) -> bool:
    try:
        session.api.get("whoami")
    except NotPermitted:
        raise
    except (BrokerUnreachable, Declined):
        return False
    return True


def _pid_in(file: Path) -> int:
    """Return the number in a file. :raises BrokerFailed: if it is missing or has no number."""
    try:
        return int(file.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        raise BrokerFailed(f"{file} has no number of a process") from None


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


VERBS = (stop, shutdown, wait, await_online_nodes)
