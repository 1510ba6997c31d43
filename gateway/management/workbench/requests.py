"""Requests for an action of the workbench: their checks, and the job that performs them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from gateway.access import Operation
from gateway.access.indirect_publishing import require_unrestricted_topics
from gateway.kernel.errors import PreconditionFailed
from gateway.kernel.messages.message import Message, Properties
from gateway.kernel.messages.native_header import native_header
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.queueing.queue_like import QueueLike
from gateway.kernel.queueing.queue_operations import require_queue
from gateway.kernel.workbench.actions import Action, Copy, Delete, Edit, Move, Replace, SourceQueue
from gateway.kernel.workbench.filters import STATES, MessageFilter
from gateway.kernel.workbench.found import Found, Place
from gateway.kernel.workbench.jobs import Job
from gateway.kernel.workbench.removed import RemovedMessages
from gateway.kernel.workbench.scanning import look_up
from gateway.kernel.workbench.targets import ExchangeTarget, QueueTarget, Target, origin_of
from gateway.management.http.bodies import boolean, integer, text
from gateway.management.http.call import Call
from gateway.management.http.errors import HttpError, bad_request
from gateway.management.http.routes import Fields
from gateway.management.permission_checks import require_no_alarm, require_publishable
from gateway.management.resources.virtual_hosts.exchanges import real_name
from gateway.management.resources.virtual_hosts.queues import permitted_queue
from gateway.management.workbench.edits import edit_of
from gateway.management.workbench.filters import REMOVABLE, filter_of, ids_of, require_known
from gateway.management.workbench.searching import messages_of

_COMMON: Final = frozenset({"filter", "ids", "limit", "dry_run", "undo", "wait_s"})

#: The fields of each action besides those of all.
_FIELDS: Final = {
    "move": frozenset({"to", "changes"}),
    "copy": frozenset({"to", "changes"}),
    "edit": frozenset({"changes"}),
    "delete": frozenset(),
    "requeue": frozenset(),
}

_NO_HEADER: Final = native_header(Properties())

_MOST_LIMIT: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """One request, whose permissions were checked."""

    call: Call
    action: str
    queue: QueueLike
    wanted: MessageFilter
    ids: list[int] | None
    limit: int
    is_dry: bool
    keeps_removed: bool
    target: Target | None
    edit: Edit | None

    @classmethod
    def read(cls, call: Call, vhost: str, name: str, action: str) -> "ActionRequest":
        """Read and check a request.

        :raises HttpError: if a field is invalid, or the queue does not exist.
        :raises Refused: if a permission is missing, or the queue does not support the action.
        """
        fields = call.fields
        require_known("request", fields, _COMMON | _FIELDS[action])
        queue = permitted_queue(call, call.vhost(vhost), name, Operation.READ)
        if action != "copy":
            require_queue(queue, f"{action} of messages")
        if action in ("edit", "requeue"):
            permitted_queue(call, call.vhost(vhost), name, Operation.WRITE)
        ids = ids_of(fields.get("ids"))
        if (ids is None) == ("filter" not in fields):
            raise bad_request("give either filter or ids; an empty filter {} takes all ready messages")
        if ids is not None and not isinstance(queue, Queue):
            raise bad_request("ids: the messages of a stream are selected by a filter")
        edit = edit_of(call, fields.get("changes"))
        if action == "edit" and edit is None:
            raise bad_request("changes: is missing")
        target = _target(call, vhost, fields.get("to")) if action in ("move", "copy") else None
        if action != "delete":
            require_no_alarm(call)
        return cls(
            call, action, queue,
            filter_of(fields.get("filter"), STATES if action == "copy" else REMOVABLE,
                      REMOVABLE if ids is not None else REMOVABLE[:1]),
            ids, _limit(fields), boolean(fields, "dry_run", True), boolean(fields, "undo", True), target, edit,
        )  # fmt: skip

    def job(self) -> Job:
        """Return the job of the request. :raises PreconditionFailed: if too many jobs are running."""
        broker, queue = self.call.broker, self.queue
        workbench = broker.workbench
        number = workbench.next_job_number()
        removed = None if self.is_dry else self._removed()
        job = Job(
            number, self.action, self.call.principal.name, queue, broker.clock.wall_ms(),
            found=self._found(), total=self._total(), wanted=self.wanted,
            action=None if self.is_dry else self._action(removed), removed=removed, limit=self.limit,
            room=workbench.room if removed is not None else lambda: "",
        )  # fmt: skip
        if removed is not None:
            job.when_ended(lambda: None if len(removed) else workbench.forget(removed.record.number))
        return job

    @property
    def can_be_undone(self) -> bool:
        """Whether what the request does can be undone: not if it publishes to an exchange, or asks for no undo."""
        return self.keeps_removed and (self.target is None or self.target.queue is not None)

    def _removed(self) -> RemovedMessages | None:
        if not self.can_be_undone:
            return None
        workbench = self.call.broker.workbench
        if full := workbench.room():
            raise PreconditionFailed(f'{full}; forget an action, or repeat the request with "undo": false')
        target = None if self.target is None else self.target.queue
        user = self.call.principal.name
        return workbench.keep(self.queue.vhost_name, self.queue.name, self.action, user, target)

    def _found(self) -> Iterator[Found | None]:
        if self.ids is not None:
            assert isinstance(self.queue, Queue)
            return look_up(self.queue, self.ids)
        until = self.call.broker.journal.position
        return messages_of(self.call, self.queue, self.wanted, Place(STATES[0], 0, -1), until)

    def _total(self) -> int:
        if self.ids is not None:
            return len(self.ids)
        queue = self.queue
        counts = {"ready": len(queue), "unacknowledged": queue.unsettled, "delayed": queue.delayed_count}
        return len(queue) if queue.is_stream else sum(counts[state] for state in self.wanted.states)

    def _action(self, removed: RemovedMessages | None) -> Action:
        journal = self.call.broker.journal
        if self.action == "copy":
            assert self.target is not None
            return Copy(self.target, self.edit, removed)
        assert isinstance(self.queue, Queue)
        source = SourceQueue(self.queue, journal, removed)
        if self.action == "delete":
            return Delete(source)
        if self.action == "edit":
            assert self.edit is not None
            return Replace(source, self.edit)
        target = self.target
        return Move(source, self._origin_of() if target is None else lambda message: target, self.edit)

    def _origin_of(self) -> Callable[[Message], Target | str]:
        """Return the targets of requeued messages: the queue of the first dead-lettering, or the end of their own."""
        call, queue = self.call, self.queue
        vhost = call.broker.vhost(queue.vhost_name)
        journal = call.broker.journal
        own = QueueTarget(queue, journal, was_delayed=True)

        def origin(message: Message) -> Target | str:
            name = origin_of(message)
            if not name:
                return own
            found = vhost.queue_by_name.get(name)
            if found is None:
                return f"queue '{name}', where the message was dead-lettered first, does not exist"
            if found.owner is not None or not call.permissions(vhost).may(Operation.WRITE, name, "queue"):
                return f"queue '{name}', where the message was dead-lettered first, may not be written to"
            return QueueTarget(found, journal, was_delayed=True)

        return origin


def _target(call: Call, source_vhost: str, value: object) -> Target:
    """Return the target in a request after checking the permissions. :raises HttpError: if it is invalid."""
    if not isinstance(value, dict):
        raise bad_request('to: must be {"queue": name} or {"exchange": name}')
    require_known("to", value, ("vhost", "queue", "exchange", "routing_key"))
    vhost = call.writable_vhost(text(value, "vhost", source_vhost))
    if ("queue" in value) == ("exchange" in value):
        raise bad_request("to: give either a queue or an exchange")
    if "queue" in value:
        if "routing_key" in value:
            raise bad_request("to.routing_key: has no effect for a queue; use changes.routing_key")
        name = text(value, "queue")
        if name not in vhost.queue_by_name:  # another 404 than that for the queue of the messages
            raise HttpError(404, "not_found", f"to.queue: no queue '{name}' in vhost '{vhost.name}'")
        return QueueTarget(permitted_queue(call, vhost, name, Operation.WRITE), call.broker.journal)
    exchange = vhost.exchange(real_name(text(value, "exchange")))
    routing_key = text(value, "routing_key") if "routing_key" in value else None
    require_publishable(call, vhost, exchange, Message(exchange.name, routing_key or "", _NO_HEADER, b""))
    require_unrestricted_topics(call.permissions(vhost), exchange.name, exchange)
    return ExchangeTarget(vhost, exchange, routing_key)


def _limit(fields: Fields) -> int:
    limit = integer(fields.get("limit", 0), "limit")
    if not 0 <= limit <= _MOST_LIMIT:
        raise bad_request(f"limit: must be from 0 (no limit) to {_MOST_LIMIT}")
    return limit
