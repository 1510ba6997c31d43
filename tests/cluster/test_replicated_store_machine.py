"""After any steps, checkpoints, losses of the node and steals of its log, the state is that after a step of the owner.

It is the last step that was reported, or a later one. ADR 0025, laws 1 and 6.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from gateway.cluster.replication import checkpoint
from gateway.cluster.replication.replicated_store import ReplicatedStore
from gateway.kernel.journal.changes import (
    Change,
    Dequeued,
    Discarded,
    Enqueued,
    Lsn,
    Put,
    Recovered,
    Removed,
    SetAside,
    Stored,
)
from gateway.testing.store_session import message_with, queue_record, vhost_record
from tests.cluster.replicated_places import ReplicatedPlace
from tests.effort import examples

QUEUES = (1, 2)

State = tuple[frozenset[object], frozenset[object]]


class Owner:
    """The listener of one opened store, and the states after each of its steps."""

    def __init__(self, store: ReplicatedStore, state: State) -> None:
        self.store = store
        self.states = [state]
        self.reported = 0
        self.failed = ""

    def on_durable(self, watermark: Lsn) -> None:
        assert not self.failed
        assert watermark > self.reported
        self.reported = watermark

    def on_refused(self, reason: str) -> None:
        raise AssertionError(reason)

    def on_set_aside(self, aside: SetAside) -> None:
        raise AssertionError(aside.reason)

    def on_stalled(self, reason: str) -> None:
        raise AssertionError(reason)

    def on_resumed(self) -> None:
        raise AssertionError("it never stalled")

    def on_failed(self, reason: str) -> None:
        self.failed = reason


class ReplicatedStores(RuleBasedStateMachine):
    """One owner at a time knows that it is one; a former owner may go on for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(checkpoint, "MOST_RECORDS", 2)
        self.vhosts: dict[str, str] = {}
        self.places: dict[int, tuple[int, int]] = {}  # position to queue and message
        self.positions = self.messages = 0
        self.owner: Owner

    @initialize(delays=st.sampled_from([(0.002, 0.0005), (0.0005, 0.005)]))
    def begin(self, delays: tuple[float, float]) -> None:
        """Either the log or the copy is behind."""
        self.place = self.new_place(*delays)
        self.open([(frozenset(), frozenset())])

    def new_place(self, latency_s: float, commit_s: float) -> ReplicatedPlace:
        return ReplicatedPlace(latency_s, commit_s)

    def teardown(self) -> None:
        self.patch.undo()

    def state(self) -> State:
        return frozenset(self.vhosts.items()), frozenset((position, *place) for position, place in self.places.items())

    def open(self, possible: list[State]) -> None:
        """Open the store as another node, whose state is one of the possible ones; its queues may have been lost."""
        store = self.place.open()
        found = list(store.recover())
        state = state_of(found)
        assert state in possible
        for _, _, message_id in state[1]:
            assert store.messages([message_id])[0].body == b"%d" % message_id
        self.vhosts = dict(state[0])
        self.places = {position: (queue, message_id) for position, queue, message_id in state[1]}
        self.owner = Owner(store, state)
        store.listen(self.owner)
        self.append([Put(queue_record(queue)) for queue in QUEUES])

    def append(self, changes: list[Change]) -> None:
        self.owner.store.append(changes)
        self.owner.states.append(self.state())

    @rule(queues=st.sets(st.sampled_from(QUEUES), min_size=1), consumed=st.booleans())
    def publish(self, queues: set[int], consumed: bool) -> None:
        self.messages += 1
        changes: list[Change] = [Stored(message_with(self.messages, b"%d" % self.messages))]
        for queue in sorted(queues):
            self.positions += 1
            self.places[self.positions] = queue, self.messages
            changes.append(Enqueued(queue, self.positions, self.messages, 5))
        self.append(changes)
        if consumed:
            self.consume(list(self.places)[-1])

    @precondition(lambda self: self.places)
    @rule(at=st.integers(0, 1000))
    def consume_one(self, at: int) -> None:
        self.consume(sorted(self.places)[at % len(self.places)])

    def consume(self, position: int) -> None:
        _, message_id = self.places.pop(position)
        changes: list[Change] = [Dequeued(position)]
        if not any(other == message_id for _, other in self.places.values()):
            changes.append(Discarded(message_id))
        self.append(changes)

    @rule(ticks=st.integers(1, 30), consuming=st.booleans())
    def keep_busy(self, ticks: int, consuming: bool) -> None:
        """Publish and consume at each tick of half a millisecond."""
        for tick in range(ticks):
            self.publish({1 + tick % 2}, consuming)
            if self.places:
                self.consume(max(self.places))
            self.pass_time(0.0005)

    @precondition(lambda self: self.places)
    @rule(at=st.integers(0, 1000))
    def requeue(self, at: int) -> None:
        position = sorted(self.places)[at % len(self.places)]
        self.append([Enqueued(*self.places[position][:1], position, self.places[position][1], 5, 1)])

    @rule(name=st.sampled_from("ab"), text=st.sampled_from("xyz"))
    def put(self, name: str, text: str) -> None:
        self.vhosts[name] = text
        self.append([Put(vhost_record(name, text))])

    @rule(name=st.sampled_from("ab"))
    def remove(self, name: str) -> None:
        self.vhosts.pop(name, None)
        self.append([Removed("vhost", (name,))])

    @rule(seconds=st.sampled_from((0.0005, 0.0005, 0.002, 0.01)))
    def pass_time(self, seconds: float) -> None:
        self.place.engine.clock.advance(seconds)

    @rule()
    def begin_checkpoint(self) -> None:
        self.owner.store.checkpoint()

    @rule()
    def lose_the_node(self) -> None:
        """Its store makes no more calls; what it has staged is lost, except what is in flight."""
        owner = self.owner
        owner.store.fail("lost")
        self.open(owner.states[owner.reported :])

    @rule()
    def steal_the_log(self) -> None:
        """The owner does not know it yet, and appends once more."""
        owner = self.owner
        self.open(owner.states[owner.reported :])
        stolen = owner.store.append([Put(vhost_record("stolen", "must not be there"))])
        self.place.engine.clock.advance(1)
        assert owner.failed
        assert owner.reported < stolen


def state_of(found: list[Recovered]) -> State:
    vhosts = {
        change.entity.name: change.entity.description
        for change in found
        if isinstance(change, Put) and change.entity.kind == "vhost"
    }
    places = {(change.position, change.queue_id, change.message_id) for change in found if isinstance(change, Enqueued)}
    return frozenset(vhosts.items()), frozenset(places)


ReplicatedStores.TestCase.settings = settings(max_examples=examples(200), stateful_step_count=60, deadline=None)
TestReplicatedStores = ReplicatedStores.TestCase
