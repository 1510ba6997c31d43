"""A queue ``a`` and a queue ``b`` of a broker in memory, and jobs of the workbench on them."""

from collections.abc import Iterable

from gateway.kernel.messages.message import Message
from gateway.kernel.queueing.queue import Queue
from gateway.kernel.workbench.actions import Action, Copy, Delete, Edit, Move, Replace, SourceQueue
from gateway.kernel.workbench.filters import READY, STATES, MessageFilter
from gateway.kernel.workbench.found import Found, Place
from gateway.kernel.workbench.jobs import Job, JobState
from gateway.kernel.workbench.removed import RemovedMessages
from gateway.kernel.workbench.scanning import scan
from gateway.kernel.workbench.targets import QueueTarget
from gateway.patterns import containing
from gateway.plugins.registry import load_plugins
from gateway.testing.broker import MemoryBroker

REGISTRY = load_plugins()
START = Place(STATES[0], 0, -1)


class Bench:
    """Jobs on the queue ``a``, whose target is ``b``. Few messages stay in memory."""

    def __init__(self, broker: MemoryBroker | None = None, **arguments: object) -> None:
        self.broker = broker or MemoryBroker(registry=REGISTRY, resident_messages=8)
        vhost = self.broker.vhost
        for name in "ab":
            if name not in vhost.queue_by_name:
                vhost.declare_queue(name, is_durable=True, arguments=dict(arguments))  # type: ignore[arg-type]

    def queue(self, name: str) -> Queue:
        found = self.broker.vhost.queue(name)
        assert isinstance(found, Queue)
        return found

    def publish(self, *bodies: bytes, is_persistent: bool = True) -> None:
        for body in bodies:
            self.broker.publish("a", body, is_persistent=is_persistent, headers={"v": body[:1].decode()})
        self.broker.commit()

    def found(self, name: str = "a", states: Iterable[str] = (READY,)) -> list[Found]:
        return [each for each in scan(self.queue(name), states, (), START, 1 << 62) if each is not None]

    def bodies(self, name: str = "a", states: Iterable[str] = (READY,)) -> list[bytes]:
        return [each.entry.message.body for each in self.found(name, states)]

    def keep(self, action: str) -> RemovedMessages:
        target = self.queue("b") if action in ("move", "copy") else None
        return self.broker.kernel.workbench.keep("/", "a", action, "guest", target)

    def run(self, action: str, value: str, *, edit: Edit | None = None, limit: int = 0) -> Job:
        """Run an action on the messages whose header ``v`` has this value."""
        job = self.job(action, value, self.keep(action), edit, limit)
        self.broker.kernel.workbench.run(job)
        return self.ended(job)

    def job(self, action: str, value: str, removed: RemovedMessages, edit: Edit | None = None, limit: int = 0) -> Job:
        """Return the job of an action."""
        workbench, journal = self.broker.kernel.workbench, self.broker.kernel.journal
        source = SourceQueue(self.queue("a"), journal, removed)
        target = QueueTarget(self.queue("b"), journal)
        actions: dict[str, Action] = {
            "move": Move(source, lambda message: target, edit),
            "copy": Copy(target, edit, removed),
            "delete": Delete(source),
            "edit": Replace(source, edit or shouted),
        }
        return Job(
            workbench.next_job_number(), action, "guest", self.queue("a"), 0,
            found=scan(self.queue("a"), STATES, (), START, journal.position), total=len(self.queue("a")),
            wanted=MessageFilter(headers=(("v", containing(value)),)), action=actions[action], removed=removed,
            limit=limit, room=workbench.room,
        )  # fmt: skip

    def undo(self, number: int) -> Job:
        return self.ended(self.broker.kernel.workbench.undo(number, "guest"))

    def ended(self, job: Job) -> Job:
        for _ in range(10_000):
            if job.state is not JobState.RUNNING:
                break
            self.broker.advance(0.001)
        assert job.state is not JobState.RUNNING
        self.broker.commit()
        return job

    def crash(self) -> "Bench":
        """Return the bench of the broker that recovers from what was committed."""
        return Bench(self.broker.crashed())


def shouted(message: Message) -> Message:
    """An edit: the body in capital letters."""
    return message.edited(body=message.body.upper())
