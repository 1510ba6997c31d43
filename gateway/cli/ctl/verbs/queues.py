"""Verbs for queues: list, purge, delete."""

from typing import Final

import click

from gateway.cli.ctl.errors import Declined, WrongUsage
from gateway.cli.ctl.listing import NounListing, columns_argument, print_listing
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject, number, objects, part, text
from gateway.cli.ctl.verb import DEFAULT_TIMEOUT_S, verb

#: Bytes of a body that ``peek`` shows, as rabbitmq-queues does.
PEEKED_BYTES: Final = 64

#: Messages of one request.
_PAGE: Final = 500

SAME_NAME = (
    *("name", "vhost", "durable", "auto_delete", "exclusive", "arguments", "policy", "operator_policy"),
    *("effective_policy_definition", "type", "state", "node", "leader", "members", "online", "memory"),
    *("consumers", "consumer_capacity", "consumer_utilisation", "exclusive_consumer_tag", "single_active_consumer_tag"),
    *("messages", "messages_ready", "messages_unacknowledged", "messages_ram", "messages_ready_ram"),
    *("messages_unacknowledged_ram", "messages_persistent", "message_bytes", "message_bytes_ready"),
    *("message_bytes_unacknowledged", "message_bytes_ram", "message_bytes_persistent", "head_message_timestamp"),
    *("messages_paged_out", "message_bytes_paged_out", "messages_delayed", "garbage_collection"),
    *("readers", "segments", "first_offset", "committed_offset", "next_offset"),
    *("idle_since", "inert", "disk_reads", "disk_writes", "slave_pids", "synchronised_slave_pids"),
)

QUEUES = NounListing(
    path=("queues",),
    columns={
        **{name: name for name in SAME_NAME},
        # RabbitMQ shows Erlang processes here; these are the names of the same entities.
        "pid": "node",
        "owner_pid": "owner_pid_details.name",
        "exclusive_consumer_pid": "exclusive_consumer_tag",
    },
    defaults=("name", "messages"),
    banner="Listing queues for vhost {vhost} ...",
    is_in_vhost=True,
)


@verb
@columns_argument
@click.option("--online", is_flag=True, help="List only available queues.")
@click.option("--offline", is_flag=True, help="List only unavailable queues.")
@click.option("--local", is_flag=True, help="List only queues of this node: all of them.")
def list_queues(session: VerbSession, columns: tuple[str, ...], online: bool, offline: bool, local: bool) -> None:
    """List the queues of a virtual host, by default with the columns name and messages."""
    if online and offline:
        raise WrongUsage("--online and --offline exclude each other")
    QUEUES.chosen(columns)  # raise before the first line is printed
    timeout_s = DEFAULT_TIMEOUT_S if session.timeout_s is None else session.timeout_s
    session.output.announce(f"Timeout: {timeout_s} seconds ...")

    def is_listed(queue: JsonObject) -> bool:
        is_down = text(queue, "state") in ("down", "stopped", "crashed")
        return not (online and is_down) and not (offline and not is_down)

    print_listing(session, QUEUES, columns, predicate=is_listed, extra_fields=["state"])


@verb
@click.argument("name")
def purge_queue(session: VerbSession, name: str) -> None:
    """Remove the ready messages of a queue."""
    session.output.announce(f"Purging queue '{name}' in vhost '{session.vhost}' ...")
    with session.reporting_missing(f"queue '{name}'"):
        session.api.delete("queues", session.vhost, name, "contents")


@verb
@click.argument("name")
@click.option("-e", "--if-empty", is_flag=True, help="Only if it has no messages.")
@click.option("-u", "--if-unused", is_flag=True, help="Only if it has no consumers.")
def delete_queue(session: VerbSession, name: str, if_empty: bool, if_unused: bool) -> None:
    """Delete a queue with its messages."""
    conditions = [word for word, is_set in (("empty", if_empty), ("unused", if_unused)) if is_set]
    only = f" if queue is {' and '.join(conditions)}" if conditions else ""
    session.output.announce(f"Deleting queue '{name}' on vhost '{session.vhost}'{only} ...")
    try:
        with session.reporting_missing(f"queue '{name}'"):
            ready = number(session.api.get("queues", session.vhost, name), "messages_ready")
            session.api.delete("queues", session.vhost, name, query={f"if-{word}": "true" for word in conditions})
    except Declined as error:  # as in rabbitmqctl, a refusal of this request is a usage error
        raise WrongUsage(str(error)) from None
    session.output.conclude(f"Queue was successfully deleted with {ready} ready messages")


@verb
@click.argument("queue")
@click.argument("position", type=click.IntRange(min=1))
def peek(session: VerbSession, queue: str, position: int) -> None:
    """Show the ready message at POSITION of a queue or stream, from 1, without any effect on it."""
    node = session.node()
    session.output.announce(f"Peeking at queue {queue} at position {position} on node {node} ...")
    with session.reporting_missing(f"queue '{queue}'"):
        found = _message_at(session, queue, position)
    if found is None:
        raise Declined("Target queue does not have a message at that position")
    shown = _peeked(found)
    if session.output.formatter == "json":
        session.output.value({"message": shown, "result": "ok"})
    else:
        session.output.rows(("keys", "values"), [{"keys": key, "values": value} for key, value in shown.items()])


def _message_at(session: VerbSession, queue: str, position: int) -> Json:
    """Return the message at a position, ``None`` if there are fewer; messages before it are passed in pages."""
    asked: JsonObject = {"filter": {"states": ["ready"]}, "truncate": PEEKED_BYTES}
    while True:
        size = min(position, _PAGE)
        answer = session.api.ask("workbench", session.vhost, queue, "search", body={**asked, "limit": size})
        found = objects(part(answer, "messages"))
        position -= len(found)
        if position <= 0:
            return found[-1]
        if (cursor := part(answer, "cursor")) is None:
            return None
        asked["cursor"] = cursor


def _peeked(message: Json) -> JsonObject:
    """Return the properties, headers and place of a message under rabbitmq-queues' names."""
    properties = part(message, "properties")
    fields = properties if isinstance(properties, dict) else {}
    headers = part(fields, "headers")
    return {
        **{name: value for name, value in fields.items() if name != "headers"},
        "routing_keys": [part(message, "routing_key")],
        "exchange": part(message, "exchange"),
        f"payload (max {PEEKED_BYTES} bytes)": part(message, "payload"),
        **{f"header.{name}": value for name, value in (headers if isinstance(headers, dict) else {}).items()},
        "header.x-delivery-count": part(message, "delivery_count"),
    }


VERBS = (list_queues, purge_queue, delete_queue, peek)
