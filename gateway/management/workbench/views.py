"""JSON of messages that a search found, of jobs, and of what can be undone."""

from gateway.kernel.broker.broker import Broker
from gateway.kernel.workbench.filters import DELAYED, UNACKNOWLEDGED
from gateway.kernel.workbench.found import Found
from gateway.kernel.workbench.jobs import Job, JobState
from gateway.kernel.workbench.removed import RemovedMessages
from gateway.management.http.routes import Fields
from gateway.management.messages import content_view
from gateway.management.views.times import timestamp

#: Bytes of each body in the sample of a job.
SHOWN = 1024


def found_view(found: Found, truncate: int) -> Fields:
    """Return a found message with at most ``truncate`` bytes of its body; ``id`` identifies it for an action."""
    entry = found.entry
    view: Fields = {"id": entry.position, "state": found.state}
    if found.state == UNACKNOWLEDGED:
        view |= {"connection": found.holder, "channel": found.channel}
    if found.state == DELAYED:
        view |= {"due_at": timestamp(found.due_at_ms), "due_at_ms": found.due_at_ms}
    view["redelivered"] = entry.is_redelivered
    view["delivery_count"] = entry.deliveries
    if not entry.never_expires:
        view |= {"enqueued_at": timestamp(entry.enqueued_at_ms), "enqueued_at_ms": entry.enqueued_at_ms}
    return view | content_view(entry.message, "auto", entry.message.body[:truncate])


def job_view(job: Job, broker: Broker) -> Fields:
    """Return a job with its progress; ``undo`` is the number to undo it, ``None`` if it cannot be undone."""
    counts = job.counts
    view: Fields = {
        "id": job.number,
        "action": job.name,
        "dry_run": job.is_dry,
        "user": job.user,
        "vhost": job.queue.vhost_name,
        "queue": job.queue.name,
        "state": job.state.value,
        "started_at": timestamp(job.started_at_ms),
        "ended_at": timestamp(job.ended_at_ms) if job.ended_at_ms else None,
        "total": counts.total,
        "examined": counts.examined,
        "matched": counts.found,
        "matched_bytes": counts.bytes,
        "done": counts.done,
        "gone": counts.gone,
        "refused": counts.refused,
        "reason": job.reason or None,
        "refusals": [{"reason": reason, "count": count} for reason, count in job.reasons.items()],
        "sample": [found_view(found, SHOWN) for found in job.sample],
        "undo": None,
    }
    if job.removed is not None and job.name != "undo" and job.removed in broker.workbench.undoable:
        view["undo"] = job.removed.record.number
    return view


def is_running(job: Job) -> bool:
    """Return whether a job has not ended."""
    return job.state is JobState.RUNNING


def undo_view(removed: RemovedMessages) -> Fields:
    """Return an action that can be undone."""
    record = removed.record
    return {
        "id": record.number,
        "action": record.action,
        "user": record.user,
        "vhost": record.vhost,
        "queue": record.queue,
        "target": {"vhost": record.target_vhost, "queue": record.target} if record.target else None,
        "messages": len(removed),
        "bytes": removed.bytes,
        "at": timestamp(record.at_ms),
        "until": timestamp(record.until_ms),
    }
