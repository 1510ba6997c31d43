"""``replay``: publish stored messages again, with their headers and ``x-replayed-from``.

    gateway pipeline run replay --archive data/archive --queue orders --where "routing_key like 'eu.%'" --dry-run
    gateway pipeline run replay --archive data/archive --queue orders --where "routing_key like 'eu.%'" --name eu-again

A name identifies one selection. The first run stores it, cut into numbered batches, in the table ``selection``;
running it again, after a crash or by mistake, publishes only missing batches, because the broker detects those it
has. For newer messages, or to repeat a replay, use another name. A stream that was deleted and declared again has
other messages: its batches are others, too.

The property ``user_id`` is omitted, because it must be the publishing user.
"""

import json
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from gateway_spark.errors import OptionError
from gateway_spark.jobs import inputs
from gateway_spark.jobs.job import Job, JobOutcome, JobRun
from gateway_spark.jobs.outputs import Outputs
from gateway_spark.jobs.running import main
from gateway_spark.jobs.words import count, number
from gateway_spark.reports import plots
from gateway_spark.reports.page import PageSection, ResultTables
from gateway_spark.rows import KINDS
from gateway_spark.schema import MESSAGE_SCHEMA
from gateway_spark.transforms.replays import annotated, numbered, selected

SELECTION: Final = "selection"
PREVIEW: Final = "preview"

#: The query that made the selection, and the number of batches published.
PLAN_FILE: Final = "plan.json"

BATCH_SIZE: Final = 1000

#: The columns that are published again; the others describe where a message was stored.
PUBLISHED: Final = tuple(name for name in MESSAGE_SCHEMA.names if name in KINDS and name != "user_id")

#: Options that must not change when a name is used again.
QUESTION: Final = ("name", "where", "archive", "queue", "queue_pattern", "exchange", "since", "until", "vhost")


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the selection and its destination."""
    parser.add_argument("--where", metavar="SQL", help="only messages that meet this SQL condition")
    parser.add_argument("--name", help="name of this replay: nothing is published twice under one name")
    parser.add_argument("--dry-run", action="store_true", help="show what would be published, and publish nothing")
    parser.add_argument("--rate", type=number(), metavar="N", help="most messages per second (default: no limit)")
    parser.add_argument(
        "--batch-size", type=count, default=BATCH_SIZE, metavar="N", help="messages published at once (default: 1000)"
    )
    target = parser.add_argument_group("destination of the messages")
    target.add_argument("--to-exchange", metavar="NAME", help="(default: that of each message)")
    target.add_argument("--to-routing-key", metavar="KEY", help="(default: that of each message)")
    target.add_argument("--to-vhost", metavar="NAME", help="(default: that of --vhost, or /)")
    target.add_argument(
        "--unroutable", choices=("fail", "drop", "deadletter"), help="handling of unroutable messages (default: fail)"
    )


def check(options: Namespace, outputs: Outputs) -> None:
    """Check that a replay which publishes has a name."""
    inputs.require_one_broker(options)
    if options.name is None and not options.dry_run:
        raise OptionError("--name is required to publish nothing twice (or use --dry-run)")


def perform(run: JobRun) -> JobOutcome:
    """Publish the selected messages batch by batch, or with ``--dry-run`` only show them."""
    if run.options.dry_run:
        return _preview(run)
    plan = _plan(run)
    chosen = run.outputs.read(run.spark, SELECTION)
    assert chosen is not None
    pace = Pace(run.options.rate)
    before = min(plan["done"] * plan["batch_size"], plan["messages"])
    for batch in range(plan["done"], plan["batches"]):
        messages = chosen.where(F.col("batch") == batch)
        pace.wait(min(plan["batch_size"], plan["messages"] - batch * plan["batch_size"]))
        _publish(run, messages, _batch_id(batch, plan.get("streams", {})))
        plan["done"] = batch + 1
        run.outputs.put(PLAN_FILE, json.dumps(plan))
        run.progress.say(f"{min(plan['done'] * plan['batch_size'], plan['messages'])} of {plan['messages']} published")
    run.outputs.write(PREVIEW, _summed_up(chosen))
    published = {"published": plan["messages"] - before, "published before": before}
    return JobOutcome({"messages": plan["messages"], "batches": plan["batches"], **published})


class Pace:
    """Limits publishing to this many messages per second; ``None`` means no limit."""

    def __init__(
        self,
        rate: float | None,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = rate
        self._clock = clock
        self._pause = pause
        self._begun: float | None = None
        self._count = 0

    def wait(self, count: int) -> None:
        """Wait until ``count`` more messages may be published."""
        if self._rate is None:
            return
        now = self._clock()
        self._begun = now if self._begun is None else self._begun
        due = self._begun + self._count / self._rate
        if due > now:
            self._pause(due - now)
        self._count += count


def _plan(run: JobRun) -> dict[str, Any]:
    """Return the plan of an earlier run, or a new one. :raises OptionError: if the earlier run had other options."""
    asked = {name: _plain(getattr(run.options, name)) for name in QUESTION}
    path = run.outputs.directory / PLAN_FILE
    if path.exists():
        plan: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if plan["asked"] != asked:
            raise OptionError(f"{path} belongs to another selection: use another --name and --out")
        if plan["done"] >= plan["batches"]:  # else the messages that were selected are published to the end
            _require_same_streams(plan.get("streams", {}), inputs.incarnations(run.options), path)
        return plan
    streams = inputs.incarnations(run.options)
    chosen = numbered(selected(inputs.messages(run), run.options.where), run.options.batch_size)
    count = run.outputs.write(SELECTION, chosen)
    size = run.options.batch_size
    batches = {"messages": count, "batch_size": size, "batches": -(-count // size), "done": 0}
    plan = {"asked": asked, "streams": streams, **batches}
    run.outputs.put(PLAN_FILE, json.dumps(plan))
    return plan


def _require_same_streams(then: Mapping[str, str], now: Mapping[str, str], plan: Path) -> None:
    """Refuse to count the messages of other streams as published; older plans and brokers name no incarnations.

    :raises OptionError: if a stream is not the one of the plan.
    """
    for name, incarnation in then.items():
        if incarnation and now.get(name, incarnation) not in ("", incarnation):
            raise OptionError(f"stream {name} was declared again since {plan}: use another --name and --out")


def _preview(run: JobRun) -> JobOutcome:
    chosen = selected(inputs.messages(run), run.options.where)
    count = run.outputs.write(PREVIEW, _summed_up(chosen))
    return JobOutcome({"messages": chosen.count(), "routing keys": count, "published": "nothing, a dry run"})


def _batch_id(batch: int, streams: Mapping[str, str]) -> str:
    """Return the id under which the broker knows a batch of these streams."""
    if not any(streams.values()):
        return str(batch)
    digest = blake2b(json.dumps(streams, sort_keys=True).encode(), digest_size=8).hexdigest()
    return f"{batch} of {digest}"


def _publish(run: JobRun, messages: DataFrame, batch: str) -> None:
    """Publish one batch in one step, in order, and therefore in one task."""
    given = sink_of(run, batch)
    # A column overrides the option of that name, so a replay to another destination omits the column.
    elsewhere = {"exchange"} & given.keys() | ({"routing_key"} if "routingKey" in given else set())
    columns = [name for name in PUBLISHED if name not in elsewhere]
    in_order = annotated(messages, _exchange(run)).coalesce(1).sortWithinPartitions("number").select(*columns)
    in_order.write.format("gateway").mode("append").options(**given).save()


def _exchange(run: JobRun) -> str | None:
    """Return the exchange whose archive is replayed, if it is one."""
    chosen: list[str] = run.options.exchange or []
    return chosen[0] if len(chosen) == 1 else None


def sink_of(run: JobRun, batch: str) -> Mapping[str, str]:
    """Return the options of the sink for a batch. :raises OptionError: if one is invalid."""
    options = run.options
    named = {
        "vhost": options.to_vhost,
        "exchange": options.to_exchange,
        "routingKey": options.to_routing_key,
        "unroutable": options.unroutable,
    }
    given = {name: value for name, value in named.items() if value is not None}
    identity = {"producerName": f"replay {options.name}", "batchId": batch}
    return inputs.checked_sink(inputs.connection_options(options) | given | identity)


def _summed_up(chosen: DataFrame) -> DataFrame:
    by_key = chosen.groupBy("vhost", "queue", "exchange", "routing_key")
    return by_key.agg(
        F.count(F.lit(1)).alias("messages"),
        F.sum(F.length("body")).alias("bytes"),
        F.min("timestamp").alias("first"),
        F.max("timestamp").alias("last"),
    ).orderBy(F.desc("messages"), "routing_key")


def _plain(value: Any) -> Any:
    """Return a value as JSON will restore it."""
    return value if value is None or isinstance(value, str | list) else str(value)


def page(tables: ResultTables, options: Mapping[str, Any]) -> list[PageSection]:
    """Show the published or selected messages by routing key."""
    found = tables[PREVIEW]
    if found.empty:
        return [PageSection("Messages", "No message was selected.")]
    most = found.groupby("routing_key")["messages"].sum().nlargest(15)
    return [PageSection("Messages by routing key", "", [plots.bars("Messages", most.to_dict())], found)]


JOB: Final = Job(
    "replay", "Publish stored messages again", add_options, perform, page, check=check, is_repeatable=False
)

if __name__ == "__main__":
    sys.exit(main(JOB))
