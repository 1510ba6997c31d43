"""A machine of random appends and accidents: after each, the store has a prefix of what was appended."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random

from gateway.kernel.errors import StorageError
from gateway.kernel.journal.changes import (
    Appended,
    Change,
    Dequeued,
    Discarded,
    Enqueued,
    Put,
    Recovered,
    Sealed,
    Stored,
    Truncated,
)
from gateway.kernel.messages.chunks import entries
from gateway.simulation.disk import ProcessKilled
from gateway.testing.store_session import entities_in, message_with, places_in, queue_record, vhost_record
from gateway.testing.store_streams import segment, stream_message
from gateway_lmdb import LmdbStore
from tests.simulation.disk.small_world import SmallWorld
from tests.storage.listeners import RecordingListener

QUEUE, STREAM = 1, 2

#: Starts may be killed, or fail on a full disk, but not so often.
MOST_STARTS = 20


@dataclass
class Content:
    """The content that a store should have."""

    count: int = 0
    bodies: dict[int, bytes] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    first: int = 0
    end: int = 0

    def apply(self, changes: list[Change]) -> None:
        self.count += 1
        for change in changes:
            if isinstance(change, Stored):
                self.bodies[change.message_id] = change.message.body
            elif isinstance(change, Discarded):
                self.bodies.pop(change.message_id, None)
            elif isinstance(change, Enqueued):
                self.places[change.position] = change.message_id
            elif isinstance(change, Dequeued):
                self.places.pop(change.position, None)
            elif isinstance(change, Appended):
                self.end = change.offset + 1
            elif isinstance(change, Truncated):
                self.first = change.first


class Machine:
    """One run. Each method is an action; ``run`` makes random ones. Raises an ``AssertionError`` for a broken promise.

    :param checks_sync: whether reported changes must survive a loss of power.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = SmallWorld(seed)
        self.steps: list[list[Change]] = []
        self.model = Content()
        self.segments: list[int] = []
        self.streams = self.random.choice((0.0, 0.2, 1.0))  # the share of steps with messages of a stream
        self.durable = 0
        self.store: LmdbStore | None = None
        self.open()

    # What a kernel does

    def append(self) -> None:
        """Append a step: messages come and go, a stream grows, is sealed and truncated."""
        if self.store is None:
            return
        number = len(self.steps) + 1
        changes: list[Change] = [Put(vhost_record("count", str(number)))]
        for message_id in range(3 * number, 3 * number + self.random.randint(0, 3)):
            body = b"%d" % message_id * self.random.choice((1, 10, 3000))
            changes += Stored(message_with(message_id, body)), Enqueued(QUEUE, message_id, message_id, 0)
        for message_id in self.random.sample(sorted(self.model.bodies), min(len(self.model.bodies), 2)):
            changes += Dequeued(message_id), Discarded(message_id)
        if self.random.random() < self.streams:
            changes += self.stream_changes()
        self.steps.append(changes)
        self.model.apply(changes)
        self.store.append(list(changes))

    def stream_changes(self) -> list[Change]:
        end = self.model.end + self.random.randint(0, 3)
        changes: list[Change] = [stream_message(STREAM, offset, 2000) for offset in range(self.model.end, end)]
        begin = self.segments[-1] if self.segments else 0
        if end - begin > 5:
            changes.append(Sealed(segment(STREAM, begin, end)))
            self.segments.append(end)
        if len(self.segments) > 3 and self.random.random() < 0.2:
            changes.append(Truncated(STREAM, self.segments[-3]))
        return changes

    def settle(self) -> None:
        """Everything becomes durable once nothing disturbs the disk."""
        self.world.disk.drain()
        if self.store is not None:
            self.world.run_until(lambda: self.watermark() == len(self.steps) or self.has_ended)

    @property
    def has_ended(self) -> bool:
        """Whether the store failed, or its process was killed."""
        return self.listener.has("failed") or not self.world.disk.is_in_use

    def watermark(self) -> int:
        """The number of steps that are reported durable."""
        return self.base + self.listener.watermark

    def read(self) -> None:
        """Contents are readable at any time, wherever they are."""
        if self.store is not None and not self.listener.has("failed"):
            with suppress(ProcessKilled, StorageError):  # a store that has failed may not have reported it yet
                self.check_contents(self.store)

    # What happens to it

    def wait(self) -> None:
        self.world.run_for(self.random.random() * self.random.choice((0.001, 0.004, 0.05, 0.5)))

    def kill(self) -> None:
        self.end(self.world.disk.kill)

    def power_cut(self) -> None:
        self.end(self.world.disk.power_cut)

    def restart(self) -> None:
        """Close the store, after which everything appended is durable."""
        self.world.disk.drain()
        if self.random.random() < 0.5:
            self.settle()
        if self.store is not None:
            with suppress(ProcessKilled):
                self.store.close()
                if not self.listener.has("failed"):
                    self.durable = len(self.steps)
            self.end(self.world.disk.kill)

    def kill_within_operations(self) -> None:
        """Kill it at some operation, maybe within the next start."""
        if self.store is not None:
            self.world.disk.kill_after(self.random.randint(0, 12))

    def compact(self) -> None:
        """Start a compaction, during which anything may happen."""
        if self.store is not None:
            self.store.compact()

    def fill(self) -> None:
        self.world.disk.fill()

    def drain(self) -> None:
        self.world.disk.drain()

    def disturb(self) -> None:
        self.world.disk.disturb(self.random.randint(1, 3))

    def fail(self) -> None:
        """The store fails finally, and is killed then."""
        if self.store is None or not self.world.disk.is_in_use:
            return
        self.world.disk.drain()
        self.world.disk.fail()
        self.append()
        self.world.run_until(lambda: self.has_ended)
        self.end(self.random.choice((self.world.disk.kill, self.world.disk.power_cut)))

    def slow(self) -> None:
        self.world.disk.sync_delay_s = self.random.choice((0.0, 0.0, 0.02))

    def end(self, how: Callable[[], None]) -> None:
        if self.store is not None:
            self.durable = max(self.durable, self.watermark())
        how()
        self.store = None
        self.open()

    def open(self) -> None:
        """Start, again after each accident, and compare what is there with what was appended."""
        attempts = 0
        while self.store is None:
            attempts += 1
            self.base = len(self.steps)
            self.listener = RecordingListener()
            try:
                store = self.world.open(retry_interval_s=0.02, killed_after=self.operations_of_start())
                store.listen(self.listener)
                self.check(store, list(store.recover()))
            except (ProcessKilled, StorageError) as error:
                if attempts >= MOST_STARTS:
                    raise AssertionError("the store does not start") from error
                self.random.choice((self.world.disk.kill, self.world.disk.power_cut))()
                self.world.disk.drain()
                continue
            self.store = store
            store.append([Put(queue_record(QUEUE)), Put(queue_record(STREAM))])
            self.base -= 1  # for this append

    def operations_of_start(self) -> int | None:
        """Return the number of operations after which a start is killed, if it is."""
        return self.random.randint(0, 12) if self.random.random() < 0.25 else None

    def check(self, store: LmdbStore, found: list[Recovered]) -> None:
        """Compare with the prefix of the steps that survived; they are all there is from now on."""
        counts = [int(entity.description) for entity in entities_in(found) if entity.kind == "vhost"]  # type: ignore[attr-defined]
        count = counts[0] if counts else 0
        assert count >= self.durable, f"{self.durable} steps were reported durable, {count} are there"
        assert count <= len(self.steps)
        del self.steps[count:]
        self.model = Content()
        for step in self.steps:
            self.model.apply(step)
        self.segments = [change.segment.end for step in self.steps for change in step if isinstance(change, Sealed)]
        self.base = self.durable = count
        places = {position: message_id for position, _, message_id, _, _ in places_in(found)}
        assert places == self.model.places
        assert list(places) == sorted(places)
        self.check_contents(store)
        assert read_stream(store, self.model.first) == list(range(self.model.first, self.model.end))

    def check_contents(self, store: LmdbStore) -> None:
        contents = store.messages(sorted(self.model.bodies))
        assert [content and content.body for content in contents] == [
            body for _, body in sorted(self.model.bodies.items())
        ]

    def run(self, actions: int = 40) -> None:
        """Make random actions; at the end, everything is durable and there."""
        for _ in range(actions):
            self.random.choice(ACTIONS)(self)
        self.settle()
        self.power_cut()
        self.world.disk.kill()


def read_stream(store: LmdbStore, offset: int) -> list[int]:
    """Return the offsets of all messages from one on."""
    found: list[int] = []
    while (data := store.stream_chunks(STREAM, offset, 5000)) is not None:
        offsets = [each[0] for each in entries(data, offset)]
        assert offsets, f"message {offset} of the stream is not in its chunk"
        found += offsets
        offset = found[-1] + 1
    return found


ACTIONS: list[Callable[[Machine], None]] = [
    *[Machine.append] * 12,
    *[Machine.wait] * 12,
    *[Machine.read] * 2,
    *[Machine.kill] * 2,
    *[Machine.power_cut] * 2,
    Machine.restart,
    Machine.kill_within_operations,
    Machine.fill,
    Machine.drain,
    Machine.disturb,
    Machine.slow,
    Machine.fail,
    Machine.compact,
]
