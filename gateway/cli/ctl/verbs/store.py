"""Verbs for the store's file, which rabbitmqctl does not have."""

import time

import click

from gateway.cli.ctl.errors import Declined
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, number, part, text
from gateway.cli.ctl.verb import verb

_POLL_INTERVAL_S = 0.5


@verb
@click.option("--no-wait", is_flag=True, help="Do not wait until it ends.")
def compact(session: VerbSession, no_wait: bool) -> None:
    """Return free space of the store's file to the file system, while the broker runs."""
    session.output.announce("Compacting the store ...")
    session.api.post("store", "compact", body=b"")
    if no_wait:
        return
    with session.progress.during("compacting"):
        compaction = _await_end(session)
    if text(compaction, "state") != "done":
        raise Declined(f"the store was not compacted: {text(compaction, 'reason')}")
    session.output.text(f"{number(compaction, 'before_bytes')} bytes became {number(compaction, 'after_bytes')}")


def _await_end(session: VerbSession) -> Json:
    """Wait until a compaction is over, and return its last state."""
    shown = ""
    while (compaction := part(session.api.get("store"), "compaction")) is None or not _is_over(compaction):
        line = f"{text(compaction, 'state')}: {number(compaction, 'copied_bytes')} of {number(compaction, 'of_bytes')}"
        if line != shown:
            session.output.announce(f"{line} bytes")
            session.progress.say(f"{line} bytes")
            shown = line
        time.sleep(_POLL_INTERVAL_S)
    return compaction


def _is_over(compaction: Json) -> bool:
    return text(compaction, "state") in ("done", "failed")


VERBS = (compact,)
