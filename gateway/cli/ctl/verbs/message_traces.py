"""Verbs for the traces of messages: which are traced, and where a message is."""

from collections.abc import Iterator

import click

from gateway.cli.ctl.errors import Declined, WrongUsage
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, objects, part, text
from gateway.cli.ctl.verb import verb


@verb
@click.argument("state", type=click.Choice(["on", "off"]))
@click.option("--sample", type=click.FloatRange(0, 1, min_open=True), help="The fraction of messages. [1]")
def trace_messages(session: VerbSession, state: str, sample: float | None) -> None:
    """Turn the tracing of messages in memory on or off in a virtual host, until the node stops."""
    if state == "off" and sample is not None:
        raise WrongUsage("--sample has no effect with off")
    session.output.announce(f'Turning message traces {state} in vhost "{session.vhost}" ...')
    with session.reporting_missing(f"vhost '{session.vhost}'"):
        chosen = 1.0 if sample is None else sample
        session.api.put("message-traces", session.vhost, body={"sample": chosen if state == "on" else 0})


@verb
@click.argument("message_id", required=False)
@click.option("--id", "trace_id", help="The number of the trace, instead of the message id of its publisher.")
@click.option("--exchange", help="Only messages that were published to this exchange.")
@click.option("--routing-key", help="Only messages with this routing key.")
@click.option("--queue", help="Only messages that this queue took or refused.")
@click.option("--user", help="Only messages that this user published or received.")
@click.option("--limit", type=click.IntRange(1, 1000), help="The largest number of messages, the latest first. [100]")
def where_is(session: VerbSession, message_id: str | None, trace_id: str | None, **filters: str | int | None) -> None:
    """Show where a traced message is, and what happened to it."""
    query = {name: str(value) for name, value in {"message_id": message_id, **filters}.items() if value is not None}
    if trace_id is not None and query:
        raise WrongUsage("give either --id or filters")
    found: Json
    if trace_id is None:
        found = part(session.api.get("message-traces", session.vhost, query=query), "traces")
    else:
        with session.reporting_missing(f"trace {trace_id}"):
            found = [session.api.get("message-traces", session.vhost, trace_id)]
    if session.output.formatter == "json":
        session.output.value(found)
        return
    traces = objects(found)
    if not traces:
        raise Declined(f"no traced message matches in vhost '{session.vhost}'")
    for trace in traces:
        for line in _lines(trace):
            session.output.text(line)


def _lines(trace: JsonObject) -> Iterator[str]:
    places = [f"{_place(place)}: {text(place, 'state')}" for place in objects(trace["where"])]
    message_id = text(trace, "message_id")
    yield f"Message {part(trace, 'id')}{f' ({message_id})' if message_id else ''}: {', '.join(places) or 'on its way'}"
    for event in objects(trace["events"]):
        shown = [f"{name}={value}" for name, value in event.items() if name not in ("event", "at", "at_ms")]
        yield f"  {text(event, 'at')} {text(event, 'event')} {' '.join(shown)}".rstrip()


def _place(place: JsonObject) -> str:
    if "exchange" in place:
        return f"exchange {text(place, 'exchange')}"
    return text(place, "queue") or "(no queue)"


VERBS = (trace_messages, where_is)
