"""/pipeline: the sink of Spark: rows are staged in parts and published in batches."""

from typing import Any

from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.call import Call
from gateway.management.http.errors import bad_request
from gateway.management.http.routes import ANY_BODY, LIST_BODY, Fields, LongTask, Routes
from gateway.management.permission_checks import require_no_alarm
from gateway.management.pipeline.publishing import BatchIdentity, BatchPublisher, PublishBatch
from gateway.management.pipeline.rows import RowDefaults
from gateway.management.pipeline.staging import MAX_ATTEMPT_NAME
from gateway.management.pipeline.streams import whole_number

routes = Routes()


@routes.post("/pipeline/<vhost>/stage", level=AccessLevel.USER, largest_body=ANY_BODY)
def stage(call: Call, vhost: str) -> Fields:
    """Stage a part of an attempt; it is published by a commit."""
    virtual_host = call.accessible_vhost(vhost)
    require_no_alarm(call)
    name, number = _attempt(call.query.get("attempt")), whole_number(call, "part")
    call.context.pipeline.staging.stage((virtual_host.name, call.principal.name), name, number, call.content)
    return {"staged": len(call.content)}


@routes.post("/pipeline/<vhost>/commit", level=AccessLevel.USER, largest_body=LIST_BODY)
def commit(call: Call, vhost: str) -> LongTask:
    """Publish a batch: all staged rows of its attempts at once, unless the batch was published before."""
    virtual_host, side = call.accessible_vhost(vhost), call.context.pipeline
    require_no_alarm(call)
    publisher = BatchPublisher(call, virtual_host, _batch(call.fields), side.staging, side.producer_memory_ms)
    return LongTask(publisher.steps(), is_exclusive=True)


@routes.post("/pipeline/<vhost>/discard", level=AccessLevel.USER, largest_body=LIST_BODY)
def discard(call: Call, vhost: str) -> None:
    """Delete the staged rows of some attempts."""
    virtual_host = call.accessible_vhost(vhost)
    attempts = call.fields.get("attempts")
    if not isinstance(attempts, list):
        raise bad_request("'attempts' must be a list")
    for name in attempts:
        call.context.pipeline.staging.discard((virtual_host.name, call.principal.name), _attempt(name))


def _batch(fields: Fields) -> PublishBatch:
    """Parse a commit. :raises HttpError: naming the invalid field."""
    unroutable, instead = fields.get("unroutable", "fail"), fields.get("dead_letter_exchange")
    if unroutable not in ("fail", "drop", "deadletter"):
        raise bad_request("'unroutable' must be fail, drop or deadletter")
    if (unroutable == "deadletter") != isinstance(instead, str):
        raise bad_request("'dead_letter_exchange' must name an exchange if and only if 'unroutable' is deadletter")
    return PublishBatch(
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


def _attempts(given: Any) -> list[tuple[str, int, int]]:
    try:
        return [(_attempt(name), _count(parts), _count(rows)) for name, parts, rows in given]
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
