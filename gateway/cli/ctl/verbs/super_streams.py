"""Verbs for super streams, compatible with rabbitmq-streams."""

import re
from typing import Final

import click

from gateway.cli.ctl.errors import WrongUsage
from gateway.cli.ctl.session import VerbSession
from gateway.cli.ctl.values import Json, JsonObject
from gateway.cli.ctl.verb import verb

_SIZE: Final = re.compile(r"([0-9]+)(kb|mb|gb|tb)?", re.IGNORECASE)
_UNITS: Final = {"": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4}

#: An ISO 8601 duration, as in rabbitmq-streams, and the seconds of its parts.
_DURATION: Final = re.compile(
    r"P(?=.)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?"
)
_PARTS_S: Final = (365 * 86400, 30 * 86400, 7 * 86400, 86400, 3600, 60, 1)
_AGE: Final = re.compile(r"[0-9]+[YMDhms]")


@verb
@click.argument("name")
@click.option("--partitions", type=int, help="Number of partitions. [3]")
@click.option("--binding-keys", "--routing-keys", help="Binding keys of the partitions, joined by commas, instead.")
@click.option("--max-length-bytes", help="Maximum size of a partition: 5000000, or 20gb.")
@click.option("--max-age", help="Maximum age of messages: P7D or PT10M30S as in ISO 8601, or 7D.")
@click.option("--stream-max-segment-size-bytes", help="Maximum size of a segment: 50000000, or 50mb.")
@click.option("--leader-locator", type=click.Choice(["client-local", "least-leaders", "random", "balanced"]))
@click.option("--initial-cluster-size", type=int, help="Has no effect on one node.")
@click.option("--exchange-type", help="x-super-stream, which routes by hash, or direct, by key.")
def add_super_stream(
    session: VerbSession,
    name: str,
    partitions: int | None,
    binding_keys: str | None,
    max_length_bytes: str | None,
    max_age: str | None,
    stream_max_segment_size_bytes: str | None,
    leader_locator: str | None,
    initial_cluster_size: int | None,
    exchange_type: str | None,
) -> None:
    """Create a super stream: an exchange that distributes messages over streams, its partitions."""
    if partitions is not None and binding_keys is not None:
        raise WrongUsage("Specify --partitions or --binding-keys, not both.")
    if partitions is not None and partitions < 1:
        raise WrongUsage("The partition number must be greater than 0")
    arguments: JsonObject = {
        "x-max-length-bytes": _size("--max-length-bytes", max_length_bytes),
        "x-max-age": _age(max_age),
        "x-stream-max-segment-size-bytes": _size("--stream-max-segment-size-bytes", stream_max_segment_size_bytes),
        "x-queue-leader-locator": leader_locator,
        "x-initial-cluster-size": initial_cluster_size,
    }
    options: JsonObject = {"partitions": partitions, "binding-keys": binding_keys, "exchange-type": exchange_type}
    session.output.announce("Adding a super stream ...")
    body: JsonObject = {**_without_none(options), "arguments": _without_none(arguments)}
    session.require_vhost()
    session.api.put("stream", "super-streams", session.vhost, name, body=body)
    session.output.conclude(f"Super stream {name} has been created")


@verb
@click.argument("name")
def delete_super_stream(session: VerbSession, name: str) -> None:
    """Delete a super stream with its partitions and all messages in them."""
    session.output.announce("Deleting a super stream ...")
    with session.reporting_missing(f"super stream '{name}'"):
        session.api.delete("stream", "super-streams", session.vhost, name)
    session.output.conclude(f"Super stream {name} has been deleted")


def _without_none(fields: JsonObject) -> dict[str, Json]:
    """Return the fields without those that are ``None``."""
    return {name: value for name, value in fields.items() if value is not None}


def _size(option: str, value: str | None) -> int | None:
    """Parse a size in bytes; units are powers of ten, as in rabbitmq-streams."""
    if value is None:
        return None
    found = _SIZE.fullmatch(value)
    if found is None:
        raise WrongUsage(f"Invalid value for {option}: {value} is not a size such as 5000000, 500mb or 20gb")
    return int(found[1]) * _UNITS[(found[2] or "").lower()]


def _age(value: str | None) -> str | None:
    """Convert an age to the form of the argument ``x-max-age``."""
    if value is None or _AGE.fullmatch(value):
        return value
    found = _DURATION.fullmatch(value)
    if found is None:
        raise WrongUsage(
            "Invalid value for --max-age, the value must be an ISO 8601 duration, e.g. PT10M30S for 10 minutes 30 "
            "seconds, P5DT8H for 5 days 8 hours; or one such as 7D"
        )
    return f"{sum(int(part or 0) * worth_s for part, worth_s in zip(found.groups(), _PARTS_S, strict=True))}s"


VERBS = (add_super_stream, delete_super_stream)
