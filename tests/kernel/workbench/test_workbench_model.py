"""Random actions of the workbench, against a plain model of two queues."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from gateway.kernel.queueing.delivery_outcome import DeliveryOutcome
from tests.kernel.workbench.bench import Bench

VALUES = st.sampled_from("xyz")


class WorkbenchMachine(RuleBasedStateMachine):
    """Two queues as dictionaries of positions with bodies; a new position is greater than all others."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.a: dict[int, bytes] = {}
        self.b: dict[int, bytes] = {}
        self.undoable: dict[int, list[tuple[int, int, bytes]]] = {}  # place in a (0: a copy), place in b, body
        self.edited: set[int] = set()
        self.position = 0
        self.count = 0

    def _next(self) -> int:
        self.position += 1
        return self.position

    def _matching(self, value: str) -> list[int]:
        return [position for position in sorted(self.a) if self.a[position][:1].lower() == value.encode()]

    @rule(values=st.lists(VALUES, min_size=1, max_size=30))
    def publish(self, values: list[str]) -> None:
        for value in values:
            self.count += 1
            body = f"{value}{self.count}".encode()
            self.a[self._next()] = body
            self.bench.publish(body)

    @rule(count=st.integers(1, 5))
    def consume(self, count: int) -> None:
        for name, model in (("a", self.a), ("b", self.b)):
            queue = self.bench.queue(name)
            for position in sorted(model)[:count]:
                entry = queue.get()
                assert entry is not None
                assert entry.message.body == model.pop(position)
                queue.settle(entry, DeliveryOutcome.ACCEPTED)
        self.bench.broker.commit()

    @rule(count=st.integers(1, 5))
    def requeue(self, count: int) -> None:
        queue = self.bench.queue("a")
        taken = [entry for _ in range(count) if (entry := queue.get()) is not None]
        for entry in taken:
            queue.settle(entry, DeliveryOutcome.REQUEUED)
        self.bench.broker.commit()

    @rule(value=VALUES, limit=st.integers(0, 4))
    def move(self, value: str, limit: int) -> None:
        job = self.bench.run("move", value, limit=limit)
        rows = []
        for position in self._matching(value)[: limit or None]:
            body, new = self.a.pop(position), self._next()
            self.b[new] = body
            rows.append((position, new, body))
        assert job.counts.done == len(rows)
        self._done(job, rows)

    @rule(value=VALUES)
    def copy(self, value: str) -> None:
        job = self.bench.run("copy", value)
        rows = []
        for position in self._matching(value):
            new = self._next()
            self.b[new] = self.a[position]
            rows.append((0, new, self.a[position]))
        self._done(job, rows)

    @rule(value=VALUES)
    def delete(self, value: str) -> None:
        job = self.bench.run("delete", value)
        self._done(job, [(position, 0, self.a.pop(position)) for position in self._matching(value)])

    @rule(value=VALUES)
    def edit(self, value: str) -> None:
        job = self.bench.run("edit", value)
        rows = [(position, position, self.a[position]) for position in self._matching(value)]
        self.position += len(rows)  # the kept originals have positions of their own
        for position, _, body in rows:
            self.a[position] = body.upper()
        assert job.removed is not None
        self.edited.add(job.removed.record.number)
        self._done(job, rows)

    def _done(self, job: Any, rows: list[tuple[int, int, bytes]]) -> None:
        if rows:
            self.undoable[job.removed.record.number] = rows

    @precondition(lambda self: self.undoable)
    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.undoable)))
        self.bench.undo(number)
        for place, made, body in self.undoable.pop(number):
            if number in self.edited:
                if place in self.a:
                    self.a[place] = body
            elif not made or (self.b.pop(made, None) is not None and place):
                self.a[place] = body
        self.edited.discard(number)

    @rule()
    def crash(self) -> None:
        self.bench = self.bench.crash()

    @invariant()
    def queues_have_the_messages_of_the_model_in_order(self) -> None:
        assert self.bench.bodies("a") == [self.a[position] for position in sorted(self.a)]
        assert self.bench.bodies("b") == [self.b[position] for position in sorted(self.b)]
        assert (len(self.bench.queue("a")), len(self.bench.queue("b"))) == (len(self.a), len(self.b))

    def teardown(self) -> None:
        """Check that the store is empty once the queues are purged and no action can be undone."""
        bench = self.bench.crash()
        for name in "ab":
            bench.queue(name).drops.purge()
        for removed in bench.broker.kernel.workbench.undoable:
            bench.broker.kernel.workbench.forget(removed.record.number)
        for _ in range(200):
            bench.broker.advance(0.001)
        bench.broker.commit()
        assert bench.broker.store.highest_ids() == (0, 0)


WorkbenchMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestWorkbench = WorkbenchMachine.TestCase
