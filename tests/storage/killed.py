"""The writer of a store that is killed: numbered steps with known content.

It prints the number of each durable step.
"""

import sys
from collections.abc import Callable
from itertools import count
from queue import SimpleQueue

from gateway.kernel.journal.changes import (
    Change,
    Dequeued,
    Discarded,
    Enqueued,
    Lsn,
    Put,
    Recovered,
    Sealed,
    SetAside,
    Stored,
    Truncated,
)
from gateway.kernel.journal.records.topology import VhostRecord
from gateway.kernel.messages.message import Message
from gateway.testing.store_session import message_with, queue_record, vhost_record
from gateway.testing.store_streams import segment, stream_message
from gateway_lmdb import LmdbStore

PER_STEP = 5
LIFETIME = 20
SIZES = (0, 10, 300, 3_000, 30_000)

#: The stream, the steps per segment, and the number of segments kept.
STREAM = 3
PER_SEGMENT = 12
KEPT = 4


def message(number: int) -> Message:
    return message_with(number, number.to_bytes(4, "big") * (SIZES[number % len(SIZES)] // 4))


def step(number: int) -> list[Change]:
    """Publish five messages to two queues, remove those of twenty steps ago except every third step, and count."""
    changes: list[Change] = [Put(vhost_record("turn", str(number))), Put(queue_record(1)), Put(queue_record(2))]
    for message_id in ids_of_step(number):
        changes += Stored(message(message_id)), Enqueued(1, 2 * message_id, message_id, number)
        changes.append(Enqueued(2, 2 * message_id + 1, message_id, number))
    if number > LIFETIME and number % 3:
        for message_id in ids_of_step(number - LIFETIME):
            changes += Dequeued(2 * message_id), Dequeued(2 * message_id + 1), Discarded(message_id)
    return changes + stream_changes(number)


def stream_changes(number: int) -> list[Change]:
    """Append five messages to a stream; seal a segment every twelve steps, and truncate all but the last four."""
    offsets = ids_of_step(number - 1)
    changes: list[Change] = [Put(queue_record(STREAM))]
    changes += [stream_message(STREAM, offset, SIZES[offset % len(SIZES)]) for offset in offsets]
    size = PER_SEGMENT * PER_STEP
    if offsets.stop % size == 0:
        changes.append(Sealed(segment(STREAM, offsets.stop - size, offsets.stop)))
        if offsets.stop > KEPT * size:
            changes.append(Truncated(STREAM, offsets.stop - KEPT * size))
    return changes


def ids_of_step(number: int) -> range:
    return range(PER_STEP * number, PER_STEP * (number + 1))


def last_step(found: list[Recovered]) -> int:
    """Return the number of the last step that a store recovered."""
    for change in found:
        if isinstance(change, Put) and isinstance(change.entity, VhostRecord):
            return int(change.entity.description)
    return 0


class Reporter:
    def __init__(self, before: int) -> None:
        self.before = before
        self.watermark = Lsn(0)

    def on_durable(self, watermark: Lsn) -> None:
        self.watermark = watermark
        print(self.before + watermark, flush=True)

    def on_refused(self, reason: str) -> None:
        sys.exit(reason)

    def on_set_aside(self, aside: SetAside) -> None:
        sys.exit(aside.reason)

    def on_stalled(self, reason: str) -> None:
        sys.exit(reason)

    def on_resumed(self) -> None:
        sys.exit("it never stalled")

    def on_failed(self, reason: str) -> None:
        sys.exit(reason)


def write_until_killed(path: str) -> None:
    calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
    store = LmdbStore(path, call_in_kernel=calls.put)
    reporter = Reporter(last_step(list(store.recover())))
    store.listen(reporter)
    for lsn in count(1):
        store.append(step(reporter.before + lsn))
        while reporter.watermark < lsn - lsn % 13 or not calls.empty():
            calls.get()()
