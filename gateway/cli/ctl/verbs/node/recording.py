"""Verbs for the recording of connections; rabbitmqctl has none of them."""

from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import part, text
from gateway.cli.ctl.verb import verb


@verb
def start_recording(session: VerbSession) -> None:
    """Record the connections that are opened from now on, without their secrets, for gateway simulate --replay."""
    session.output.announce(f"Starting a recording on node {session.node()} ...")
    with session.controlling():
        session.api.put("recording", body={})
        found = session.api.get("recording")
    session.output.announce(f"Recording to {text(found, 'file')}")


@verb
def stop_recording(session: VerbSession) -> None:
    """End the recording of connections; its file stays."""
    session.output.announce(f"Ending the recording on node {session.node()} ...")
    with session.controlling():
        session.api.delete("recording")


@verb
def recording_status(session: VerbSession) -> None:
    """Print whether connections are recorded, the file, its size, and the numbers of connections."""
    session.output.announce(f"Recording on node {session.node()} ...")
    with session.controlling():
        found = session.api.get("recording")
    if session.output.formatter == "json":
        session.output.value(found)
        return
    for name in ("state", "error", "file", "started_at", "size", "connections", "open_connections"):
        if (value := part(found, name)) not in (None, ""):
            session.output.text(f"{name}: {value}")
    for name in ("left_out", "incomplete"):
        if value := part(found, name):
            session.output.text(f"{name}: {value}")


VERBS = (start_recording, stop_recording, recording_status)
