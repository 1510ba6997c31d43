"""/pipeline: the sink of Spark: rows are staged in parts and published in batches."""

from typing import Any

from twisted.internet.defer import Deferred

from gateway.kernel.vhosts.virtual_host import VirtualHost
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request
from gateway.management.http.routes import ANY_BODY, LIST_BODY, Fields, LongTask, Routes
from gateway.management.permission_checks import require_no_alarm
from gateway.management.pipeline.awaiting import Steps
from gateway.management.pipeline.batch_run import BatchRun
from gateway.management.pipeline.batches import BatchIdentity, CommittedAttempt, StagedBatch
from gateway.management.pipeline.context import PipelineContext
from gateway.management.pipeline.published import DUPLICATE, is_published
from gateway.management.pipeline.publishing import BatchPublisher
from gateway.management.pipeline.refusals import not_committed, not_staged, too_large
from gateway.management.pipeline.row_checks import RowChecks
from gateway.management.pipeline.rows import RowDefaults
from gateway.management.pipeline.staged_files import AttemptKey
from gateway.management.pipeline.staging import MAX_ATTEMPT_NAME, Staging
from gateway.management.pipeline.streams import whole_number

routes = Routes()


@routes.post("/pipeline/<vhost>/stage", level=AccessLevel.USER, largest_body=ANY_BODY)
def stage(call: Call, vhost: str) -> "Deferred[Fields]":
    """Stage a part of an attempt, which a commit publishes; the answer comes when it is durable."""
    virtual_host = call.accessible_vhost(vhost)
    require_no_alarm(call)
    name, number, size = _attempt(call.query.get("attempt")), whole_number(call, "part"), len(call.content)
    if (exchange := call.query.get("exchange")) is not None:
        _checks(call, virtual_host).writable_exchange(exchange)
    key = AttemptKey(virtual_host.name, call.principal.name, name)
    staged = call.context.pipeline.staging.stage(key, number, call.content)
    return staged.addCallback(lambda parts: {"staged": size, "parts": parts})


@routes.post("/pipeline/<vhost>/commit", level=AccessLevel.USER, largest_body=LIST_BODY)
def commit(call: Call, vhost: str) -> LongTask:
    """Publish a batch: all staged rows of its attempts, unless the batch was published before.

    A small batch is published at once; another one is committed at once and published in slices. With ``is_repeated``
    the batch must be one that was committed before: tasks have not staged rows again.
    """
    virtual_host, pipeline = call.accessible_vhost(vhost), call.context.pipeline
    require_no_alarm(call)
    batch = _batch(call.fields, virtual_host.name, call.principal.name)
    wait_s = _wait_s(call.fields)
    found = pipeline.runs.find(virtual_host, batch)
    if isinstance(found, BatchRun):
        return LongTask(_joining(pipeline, batch, found, wait_s))
    if found is not None or is_published(virtual_host, batch.identity):
        return LongTask(_discarding(pipeline.staging, batch))
    if call.fields.get("is_repeated"):
        raise not_committed()
    size = _size(pipeline.staging, batch)
    if pipeline.batch_limit is not None and size > pipeline.batch_limit:
        advice = "write less at a time (option 'maxOffsetsPerTrigger' of the source), or raise it"
        raise too_large("a batch", "pipeline.batch_size", pipeline.batch_limit, advice)
    if pipeline.batch_limit is not None or size <= pipeline.at_once_size:
        publisher = BatchPublisher(call, virtual_host, batch, pipeline.staging, pipeline.producer_memory_ms)
        return LongTask(publisher.steps(), is_exclusive=True)
    run = pipeline.runs.commit(virtual_host, batch, _checks(call, virtual_host))
    return LongTask(pipeline.runs.waiting(run, wait_s))


@routes.get("/pipeline/<vhost>/batch", level=AccessLevel.USER)
def batch_state(call: Call, vhost: str) -> Fields:
    """Return whether a batch is unknown, committed or published: rows of the latter two need not be staged again."""
    virtual_host, pipeline = call.accessible_vhost(vhost), call.context.pipeline
    named = {name: call.query.get(name) for name in ("producer", "query")}
    identity = _identity(named | {"batch": whole_number(call, "batch")})
    if is_published(virtual_host, identity):
        return {"state": "published"}
    runs = pipeline.runs.of(virtual_host)
    is_committed = any(run.batch is not None and run.staged.identity == identity for run in runs)
    return {"state": "publishing" if is_committed else "unknown"}


@routes.post("/pipeline/<vhost>/discard", level=AccessLevel.USER, largest_body=LIST_BODY)
def discard(call: Call, vhost: str) -> LongTask:
    """Delete the staged rows of some attempts that are not committed."""
    virtual_host = call.accessible_vhost(vhost)
    attempts = call.fields.get("attempts")
    if not isinstance(attempts, list):
        raise bad_request("'attempts' must be a list")
    keys = [AttemptKey(virtual_host.name, call.principal.name, _attempt(name)) for name in attempts]
    return LongTask(call.context.pipeline.staging.discarding(keys))


@routes.get("/pipeline/<vhost>/batches", level=AccessLevel.MONITORING)
def batches(call: Call, vhost: str) -> Fields:
    """List the batches that are being committed or published in slices, and the staged rows of all users."""
    virtual_host, pipeline = call.accessible_vhost(vhost), call.context.pipeline
    staged = {"attempts": len(pipeline.staging), "bytes": pipeline.staging.size, "limit": pipeline.staging.limit}
    return {"batches": [run.view for run in pipeline.runs.of(virtual_host)], "staged": staged}


@routes.delete("/pipeline/<vhost>/batches/<name>", level=AccessLevel.ADMINISTRATOR)
def discard_batch(call: Call, vhost: str, name: str) -> None:
    """End a committed batch that cannot be published: the rest of its rows is deleted."""
    call.context.pipeline.runs.discard(call.accessible_vhost(vhost), name)


def _checks(call: Call, vhost: VirtualHost) -> RowChecks:
    return RowChecks(vhost, call.principal, call.permissions(vhost), call.context.max_message_size)


def _size(staging: Staging, batch: StagedBatch) -> int:
    """Return the size of a batch in bytes. :raises HttpError: if not all of it is staged."""
    size = 0
    for name, parts, _ in batch.attempts:
        attempt = staging.attempt(batch.key(name))
        if attempt is None or not attempt.has(parts):
            raise not_staged(name)
        size += attempt.size
    return size


def _joining(pipeline: PipelineContext, batch: StagedBatch, run: BatchRun, wait_s: float | None) -> Steps[object]:
    """Return the steps that wait for the run of the same batch, whose attempts may be others: these are deleted."""
    yield from pipeline.staging.discarding(batch.keys)
    return (yield from pipeline.runs.waiting(run, wait_s))


def _discarding(staging: Staging, batch: StagedBatch) -> Steps[Fields]:
    """Return the steps that delete the rows of a batch that was published before, and its answer."""
    yield from staging.discarding(batch.keys)
    return DUPLICATE


def _wait_s(fields: Fields) -> float | None:
    """Return the time that a commit waits for its end, in seconds; ``None`` for any time."""
    value = fields.get("wait_s")
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 3600):
        raise bad_request("'wait_s' must be a number of seconds from 0 to 3600")
    return value


def _batch(fields: Fields, vhost: str, user: str) -> StagedBatch:
    """Parse a commit. :raises HttpError: naming the invalid field."""
    unroutable, instead = fields.get("unroutable", "fail"), fields.get("dead_letter_exchange")
    if unroutable not in ("fail", "drop", "deadletter"):
        raise bad_request("'unroutable' must be fail, drop or deadletter")
    if (unroutable == "deadletter") != isinstance(instead, str):
        raise bad_request("'dead_letter_exchange' must name an exchange if and only if 'unroutable' is deadletter")
    return StagedBatch(
        vhost,
        user,
        identity=_identity(fields),
        attempts=_attempts(fields.get("attempts")),
        defaults=RowDefaults(_text_or_none(fields, "exchange"), _text_or_none(fields, "routing_key") or ""),
        may_drop=unroutable == "drop",
        dead_letter_exchange=instead,
    )


def _identity(fields: Fields) -> BatchIdentity | None:
    """Return the identity of a batch; ``None`` without one: then it may be published twice."""
    producer, query, batch = fields.get("producer"), fields.get("query"), fields.get("batch")
    if producer is query is batch is None:
        return None
    if isinstance(producer, str) and isinstance(query, str) and isinstance(batch, int) and batch >= 0:
        return BatchIdentity(producer, query, batch)
    raise bad_request(
        "'producer', 'query' and 'batch' must be two strings and a whole number from 0, or all be missing"
    )


def _attempts(given: Any) -> list[CommittedAttempt]:
    try:
        return [CommittedAttempt(_attempt(name), _count(parts), _count(rows)) for name, parts, rows in given]
    except (TypeError, ValueError):
        raise bad_request("'attempts' must be a list of [name, number of parts, number of rows]") from None


def _attempt(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= MAX_ATTEMPT_NAME:
        raise bad_request(f"the name of an attempt must have 1 to {MAX_ATTEMPT_NAME} characters")
    return name


def _count(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(value)
    return value


def _text_or_none(fields: Fields, name: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise bad_request(f"'{name}' must be a string")
    return value
