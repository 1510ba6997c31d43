"""``gatewayctl messages``: search, move, copy, edit, delete and requeue messages; rabbitmqctl has no such verbs."""

import time
from collections.abc import Callable
from typing import Any, Final

import click

from gateway.cli.ctl.errors import Declined, WrongUsage
from gateway.cli.ctl.listing import NounListing
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, number, objects, parse_json, part, text
from gateway.cli.ctl.verb import verb

_FOUND: Final = NounListing(
    path=(),
    columns={
        name: name
        for name in (
            *("id", "state", "redelivered", "delivery_count", "enqueued_at", "due_at", "connection", "channel"),
            *("exchange", "routing_key", "properties", "payload", "payload_encoding", "payload_bytes"),
        )
    },
    defaults=("id", "state", "routing_key", "properties", "payload"),
    banner="Searching queue '{queue}' in vhost {vhost} ...",
)

_COUNTS: Final = ("examined", "matched", "matched_bytes", "done", "gone", "refused")
_UNDOABLE: Final = ("id", "action", "user", "vhost", "queue", "messages", "bytes", "at", "until")
_JOBS: Final = ("id", "action", "dry_run", "user", "vhost", "queue", "state", "total", "examined", "done", "undo")

#: Seconds that one request waits for a job, so that progress is shown every second.
_WAIT_S: Final = 1

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _options(*options: Decorator) -> Decorator:
    def decorate(action: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            action = option(action)
        return action

    return decorate


_STATES: Final = ("ready", "unacknowledged", "delayed")

_FILTERS: Final = _options(
    click.option("--header", "headers", multiple=True, metavar="NAME[=TEXT]", help="With a header, containing TEXT."),
    click.option("--header-pattern", "header_patterns", multiple=True, metavar="NAME=PATTERN", help="By a pattern."),
    click.option("--key", help="With a routing key that contains this text."),
    click.option("--key-pattern", help="With a routing key that matches this pattern."),
    click.option("--body", help="With a body that contains this text."),
    click.option("--body-pattern", help="With a body whose first 64 KiB match this pattern."),
    click.option("--exchange", help="Published to this exchange; '' is the default exchange."),
    click.option("--state", "states", multiple=True, type=click.Choice(_STATES), help="In this state."),
)

_SELECTION: Final = _options(
    _FILTERS,
    click.option("--id", "ids", multiple=True, type=int, help="The message with this id, as search shows it."),
    click.option("--all", "is_all", is_flag=True, help="All ready messages."),
    click.option("--limit", type=click.IntRange(min=1), help="At most this many messages."),
    click.option("--apply", "applies", is_flag=True, help="Do it. Without this option only the effect is shown."),
    click.option("--no-undo", is_flag=True, help="Do not keep what is needed to undo it."),
)

_TARGET: Final = _options(
    click.option("--to", "queue_to", metavar="QUEUE", help="To this queue."),
    click.option("--to-exchange", metavar="EXCHANGE", help="To this exchange, which cannot be undone."),
    click.option("--routing-key", help="With this routing key."),
    click.option("--to-vhost", help="In this virtual host. [that of the queue]"),
)

_CHANGES: Final = _options(
    click.option("--set-header", multiple=True, metavar="NAME=JSON", help="Set a header."),
    click.option("--remove-header", multiple=True, metavar="NAME", help="Remove a header."),
    click.option("--set-property", multiple=True, metavar="NAME=JSON", help="Set a property; null removes it."),
    click.option("--set-key", help="Replace the routing key."),
    click.option("--set-body", help="Replace the body."),
)


@click.group("messages")
def messages() -> None:
    """Search the messages of a queue, and move, copy, edit, delete or requeue them."""


@verb
@click.argument("queue")
@click.argument("columns", nargs=-1)
@_FILTERS
@click.option("--limit", type=click.IntRange(1, 500), default=50, help="Maximum number to show. [50]")
@click.option("--truncate", type=click.IntRange(0, 2**20), default=100, help="Bytes of each body to show. [100]")
@click.option("--cursor", help="Continue a search where it ended.")
def search(
    session: VerbSession,
    queue: str,
    columns: tuple[str, ...],
    limit: int,
    truncate: int,
    cursor: str | None,
    **filters: Any,
) -> None:
    """Search the messages of a queue or stream, without any effect on them."""
    chosen = _FOUND.chosen(columns)
    session.output.announce(_FOUND.banner.format(queue=queue, vhost=session.vhost))
    wanted = _filter(**{**filters, "states": filters["states"] or _STATES})
    fields: JsonObject = {"filter": wanted, "limit": limit, "truncate": truncate}
    with session.reporting_missing(f"queue '{queue}'"):
        answer = session.api.ask("workbench", session.vhost, queue, "search", body=fields | _given(cursor=cursor))
    session.output.rows(chosen, [_FOUND.row(each, chosen) for each in objects(part(answer, "messages"))])
    if text(answer, "cursor"):
        session.output.announce(
            f"Examined {number(answer, 'examined')} messages and stopped ({text(answer, 'stopped_by')}); "
            f"continue with --cursor {text(answer, 'cursor')}"
        )


@verb
@click.argument("queue")
@_SELECTION
@_TARGET
@_CHANGES
def move(session: VerbSession, queue: str, **options: Any) -> None:
    """Move messages to another queue or an exchange."""
    _act(session, "move", queue, options)


@verb
@click.argument("queue")
@_SELECTION
@_TARGET
@_CHANGES
def copy(session: VerbSession, queue: str, **options: Any) -> None:
    """Copy messages to a queue or an exchange."""
    _act(session, "copy", queue, options)


@verb
@click.argument("queue")
@_SELECTION
@_CHANGES
def edit(session: VerbSession, queue: str, **options: Any) -> None:
    """Put changed messages in the places of the messages."""
    if not _changes(options):
        raise WrongUsage("give a change: --set-body, --set-key, --set-header, --remove-header or --set-property")
    _act(session, "edit", queue, options)


@verb
@click.argument("queue")
@_SELECTION
def delete(session: VerbSession, queue: str, **options: Any) -> None:
    """Delete messages."""
    _act(session, "delete", queue, options)


@verb
@click.argument("queue")
@_SELECTION
def requeue(session: VerbSession, queue: str, **options: Any) -> None:
    """Return dead letters to the queue where they died first, other messages to the end of their queue."""
    _act(session, "requeue", queue, options)


@verb
@click.argument("id", required=False, type=int)
def undo(session: VerbSession, id: int | None) -> None:
    """Undo an action; without ID, list the actions that can be undone."""
    if id is None:
        found = session.api.list("workbench", "undo")
        session.output.rows(_UNDOABLE, [{name: part(row, name) for name in _UNDOABLE} for row in found])
        return
    _follow(session, session.api.ask("workbench", "undo", str(id), body={"wait_s": _WAIT_S}))


@verb
@click.option("--cancel", type=int, metavar="ID", help="Cancel this job.")
def jobs(session: VerbSession, cancel: int | None) -> None:
    """List the running jobs and the last ended ones."""
    if cancel is not None:
        session.api.delete("workbench", "jobs", str(cancel))
        return
    found = session.api.list("workbench", "jobs")
    session.output.rows(_JOBS, [{name: part(row, name) for name in _JOBS} for row in found])


def _act(session: VerbSession, action: str, queue: str, options: dict[str, Any]) -> None:
    fields: JsonObject = {"dry_run": not options["applies"], "undo": not options["no_undo"], "wait_s": _WAIT_S}
    fields |= _given(limit=options["limit"]) | _selected(options)
    if "queue_to" in options:
        fields["to"] = _target(options)
    if "set_header" in options and (changes := _changes(options)):
        fields["changes"] = changes
    with session.reporting_missing(f"queue '{queue}'"):
        report = session.api.ask("workbench", session.vhost, queue, action, body=fields)
    _follow(session, report)


def _follow(session: VerbSession, report: Json) -> None:
    """Show the progress of a job until its end, then its report. :raises Declined: if it did not complete."""
    while text(report, "state") == "running":
        progress = f"examined {number(report, 'examined')} of about {number(report, 'total')}"
        click.echo(f"job {number(report, 'id')}: {progress}, done {number(report, 'done')}", err=True)
        time.sleep(_WAIT_S)
        report = session.api.get("workbench", "jobs", str(number(report, "id")))
    session.output.rows(_COUNTS, [{name: part(report, name) for name in _COUNTS}])
    for refusal in objects(part(report, "refusals")):
        click.echo(f"refused {number(refusal, 'count')}: {text(refusal, 'reason')}", err=True)
    if part(report, "dry_run"):
        session.output.announce("Nothing was changed: repeat with --apply.")
    if undo_number := number(report, "undo"):
        session.output.announce(f"Undo with: gatewayctl messages undo {undo_number}")
    if text(report, "state") != "done":
        raise Declined(f"the job was {text(report, 'state')}: {text(report, 'reason') or 'as requested'}")


def _selected(options: dict[str, Any]) -> JsonObject:
    """Return what the action applies to. :raises WrongUsage: without a selection, or with two."""
    names = ("headers", "header_patterns", "key", "key_pattern", "body", "body_pattern", "exchange", "states")
    filters = {name: options[name] for name in names}
    has_filter = any(value or value == "" for value in filters.values())
    if [has_filter, bool(options["ids"]), options["is_all"]].count(True) != 1:
        raise WrongUsage("select messages by filters such as --header, by --id, or by --all")
    if options["ids"]:
        return {"ids": list(options["ids"])}
    return {"filter": _filter(**filters)}


def _filter(
    headers: tuple[str, ...],
    header_patterns: tuple[str, ...],
    key: str | None,
    key_pattern: str | None,
    body: str | None,
    body_pattern: str | None,
    exchange: str | None,
    states: tuple[str, ...],
) -> JsonObject:
    """Return the filter of the API. :raises WrongUsage: if a text and a pattern are given for the same part."""
    conditions: JsonObject = {}
    for each in headers:
        name, equals, wanted = each.partition("=")
        conditions[name] = {"contains": wanted} if equals else None
    conditions |= {name: {"pattern": pattern} for name, pattern in map(_pair, header_patterns)}
    filter: JsonObject = {"headers": conditions} if conditions else {}
    filter |= _condition("key", key, key_pattern) | _condition("body", body, body_pattern)
    return filter | _given(exchange=exchange, states=list(states) or ["ready"])


def _condition(name: str, contained: str | None, pattern: str | None) -> JsonObject:
    if contained is not None and pattern is not None:
        raise WrongUsage(f"give either --{name} or --{name}-pattern")
    if contained is not None:
        return {name: {"contains": contained}}
    return {} if pattern is None else {name: {"pattern": pattern}}


def _target(options: dict[str, Any]) -> JsonObject:
    if (options["queue_to"] is None) == (options["to_exchange"] is None):
        raise WrongUsage("give either --to or --to-exchange")
    return _given(
        queue=options["queue_to"],
        exchange=options["to_exchange"],
        routing_key=options["routing_key"],
        vhost=options["to_vhost"],
    )


def _changes(options: dict[str, Any]) -> JsonObject:
    headers: JsonObject = {name: parse_json(value) for name, value in map(_pair, options["set_header"])}
    headers |= dict.fromkeys(options["remove_header"])
    properties: JsonObject = {name: parse_json(value) for name, value in map(_pair, options["set_property"])}
    changes = _given(routing_key=options["set_key"], payload=options["set_body"])
    return changes | ({"headers": headers} if headers else {}) | ({"properties": properties} if properties else {})


def _pair(option: str) -> tuple[str, str]:
    name, equals, value = option.partition("=")
    if not equals or not name:
        raise WrongUsage(f"'{option}' is not NAME=VALUE")
    return name, value


def _given(**fields: Json) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}


for _verb in (search, move, copy, edit, delete, requeue, undo, jobs):
    messages.add_command(_verb)

VERBS = (messages,)
