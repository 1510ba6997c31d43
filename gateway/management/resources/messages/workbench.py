"""/workbench: search, move, copy, edit, delete and requeue messages. RabbitMQ has no such resource."""

from collections.abc import Generator
from typing import Any, Final

from twisted.internet.defer import Deferred

from gateway.access import Operation
from gateway.kernel.errors import NotFound
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.workbench.filters import STATES
from gateway.kernel.workbench.jobs import Job
from gateway.kernel.workbench.removed import RemovedMessages
from gateway.management.auditing.recorder import actor_of
from gateway.management.http.access_levels import AccessLevel
from gateway.management.http.bodies import digits, integer
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError, bad_request, missing
from gateway.management.http.routes import ANY_BODY, Fields, LongTask, Reply, Routes
from gateway.management.resources.virtual_hosts.queues import permitted_queue
from gateway.management.workbench.filters import filter_of, place_of, require_known
from gateway.management.workbench.requests import ActionRequest
from gateway.management.workbench.searching import SearchLimits, search
from gateway.management.workbench.views import is_running, job_view, undo_view

routes = Routes()

_QUEUE: Final = "/workbench/<vhost>/<name>"

#: The fields of a search.
_SEARCH: Final = frozenset({"filter", "limit", "cursor", "truncate", "max_examined", "max_seconds"})

#: Found messages, examined messages and bytes of each body in an answer: default and maximum.
_LIMIT: Final = (50, 500)
_EXAMINED: Final = (100_000, 10_000_000)
_TRUNCATE: Final = (1024, 2**20)

#: Seconds of a search, and seconds that a request waits for its job: default and maximum.
_SECONDS: Final = (5, 60)
_WAIT_S: Final = (2, 60)


@routes.post(f"{_QUEUE}/search")
def search_messages(call: Call, vhost: str, name: str) -> LongTask:
    """Search the messages of a queue or stream, without any effect on them."""
    fields = call.fields
    require_known("request", fields, _SEARCH)
    queue = permitted_queue(call, call.vhost(vhost), name, Operation.READ)
    wanted = filter_of(fields.get("filter"), default=STATES)
    limits = SearchLimits(
        _bounded(fields, "limit", *_LIMIT),
        _bounded(fields, "max_examined", *_EXAMINED),
        _bounded(fields, "max_seconds", *_SECONDS),
        _bounded(fields, "truncate", *_TRUNCATE, least=0),
    )
    return LongTask(search(call, queue, wanted, place_of(fields.get("cursor")), limits))


@routes.post(f"{_QUEUE}/move", largest_body=ANY_BODY)
def move(call: Call, vhost: str, name: str) -> LongTask:
    """Move messages to another queue or an exchange."""
    return _act(call, vhost, name, "move")


@routes.post(f"{_QUEUE}/copy", largest_body=ANY_BODY)
def copy(call: Call, vhost: str, name: str) -> LongTask:
    """Copy messages to a queue or an exchange."""
    return _act(call, vhost, name, "copy")


@routes.post(f"{_QUEUE}/edit", largest_body=ANY_BODY)
def edit(call: Call, vhost: str, name: str) -> LongTask:
    """Put changed messages in the places of the messages."""
    return _act(call, vhost, name, "edit")


@routes.post(f"{_QUEUE}/delete")
def delete(call: Call, vhost: str, name: str) -> LongTask:
    """Delete messages."""
    return _act(call, vhost, name, "delete")


@routes.post(f"{_QUEUE}/requeue")
def requeue(call: Call, vhost: str, name: str) -> LongTask:
    """Return dead letters to the queue where they died first, and other messages to the end of their queue."""
    return _act(call, vhost, name, "requeue")


# Jobs


@routes.get("/workbench/jobs")
def jobs(call: Call) -> list[Fields]:
    """List the jobs of the user, for administrators those of all users."""
    return [_without_sample(call, job) for job in call.broker.workbench.jobs if _may_see(call, job.user)]


@routes.get("/workbench/jobs/<id>")
def job(call: Call, id: str) -> Fields:
    """Return a job with its progress."""
    return job_view(_existing_job(call, id), call.broker)


@routes.delete("/workbench/jobs/<id>")
def cancel(call: Call, id: str) -> None:
    """Cancel a job; its effects so far stay, and can be undone."""
    _existing_job(call, id).cancel()


# Undo


@routes.get("/workbench/undo")
def undoable(call: Call) -> list[Fields]:
    """List the actions of the user that can be undone, for administrators those of all users."""
    found = call.broker.workbench.undoable
    return [undo_view(removed) for removed in found if _may_see(call, removed.record.user)]


@routes.post("/workbench/undo/<id>")
def undo(call: Call, id: str) -> LongTask:
    """Undo an action: put the messages back in their places."""
    fields = call.fields
    require_known("request", fields, ("wait_s",))
    record = _existing_undo(call, id).record
    _require_usable(call, record.vhost, record.queue)
    if record.target:
        permitted_queue(call, call.vhost(record.target_vhost), record.target, Operation.READ)
    job = call.broker.workbench.undo(record.number, call.principal.name)
    details: Fields = {"undo": record.number, "undone_action": record.action}
    return _answered(call, job, _bounded(fields, "wait_s", *_WAIT_S, least=0), details)


@routes.delete("/workbench/undo/<id>")
def forget(call: Call, id: str) -> None:
    """Forget an action with the messages it removed, before its time is over."""
    number = _existing_undo(call, id).record.number
    if any(is_running(each) and each.removed is _existing_undo(call, id) for each in call.broker.workbench.jobs):
        raise bad_request(f"action {number} is still running")
    call.broker.workbench.forget(number)


def _act(call: Call, vhost: str, name: str, action: str) -> LongTask:
    wait_s = _bounded(call.fields, "wait_s", *_WAIT_S, least=0)
    request = ActionRequest.read(call, vhost, name, action)
    job = request.job()
    call.broker.workbench.run(job)
    return _answered(call, job, wait_s, _shown_request(call))


def _answered(call: Call, job: Job, wait_s: int, details: Fields) -> LongTask:
    """Return the task that waits for a job: 200 with its report, or 202 with its progress if it takes longer."""
    if not job.is_dry:
        job.when_ended(lambda: _record(call, job, details))
    return LongTask(_waiting(call, job, wait_s))


def _waiting(call: Call, job: Job, wait_s: int) -> Generator[Deferred[None] | None, None, Reply]:
    ended: Deferred[None] = Deferred()

    def end() -> None:
        if not ended.called:
            ended.callback(None)

    timer: Any = call.context.reactor.callLater(wait_s, end)
    job.when_ended(end)
    yield ended
    if timer.active():
        timer.cancel()
    return Reply(202 if is_running(job) else 200, job_view(job, call.broker))


def _record(call: Call, job: Job, details: Fields) -> None:
    """Record the end of a job in the audit record."""
    counts = job.counts
    removed = job.removed
    outcome: Fields = {
        "job": job.number,
        "state": job.state.value,
        "done": counts.done,
        "gone": counts.gone,
        "refused": counts.refused,
    }
    if removed is not None and "undo" not in details:
        outcome["undo"] = removed.record.number
    queue = job.queue
    call.broker.audit.record(
        actor_of(call), f"workbench.{job.name}", queue.vhost_name, queue.name, details={**details, **outcome}
    )


def _shown_request(call: Call) -> Fields:
    """Return the request for the audit record, without bodies."""
    fields = dict(call.fields)
    changes = fields.get("changes")
    if isinstance(changes, dict) and "payload" in changes:
        fields["changes"] = {**changes, "payload": f"({len(str(changes['payload']))} characters)"}
    if isinstance(fields.get("ids"), list):
        fields["ids"] = fields["ids"][:100]
    return {"request": fields}


def _bounded(fields: Fields, name: str, default: int, most: int, *, least: int = 1) -> int:
    value = integer(fields.get(name, default), name)
    if not least <= value <= most:
        raise bad_request(f"{name}: must be from {least} to {most}")
    return value


def _may_see(call: Call, user: str) -> bool:
    return user == call.principal.name or call.may(AccessLevel.ADMINISTRATOR)


def _existing_job(call: Call, id: str) -> Job:
    number = digits(id)
    try:
        found = call.broker.workbench.job(-1 if number is None else number)
    except NotFound as error:
        raise HttpError(404, "not_found", str(error)) from None
    if not _may_see(call, found.user):
        raise missing()
    return found


def _existing_undo(call: Call, id: str) -> RemovedMessages:
    number = digits(id)
    try:
        removed = call.broker.workbench.removed(-1 if number is None else number)
    except NotFound as error:
        raise HttpError(404, "not_found", str(error)) from None
    if not _may_see(call, removed.record.user):
        raise missing()
    return removed


def _require_usable(call: Call, vhost: str, name: str) -> QueueLike:
    """Require that the user may put messages back into a queue."""
    virtual_host = call.vhost(vhost)
    permitted_queue(call, virtual_host, name, Operation.READ)
    return permitted_queue(call, virtual_host, name, Operation.WRITE)


def _without_sample(call: Call, job: Job) -> Fields:
    view = job_view(job, call.broker)
    del view["sample"]
    return view
