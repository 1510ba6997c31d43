"""The cost of restoring stored messages at a start: one by one, and in runs of one queue.

    python -m benchmarks.micro.recovery [messages]

The messages are in one queue, then spread over a hundred. Both ways are repeated in turn, on the same store. Each line:
CPU microseconds per message, of the quickest repetition, and the ratio of the two ways.
"""

import gc
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from benchmarks.micro.store import Kernel
from gateway.kernel.journal.changes import Change, Enqueued, Put, Recovered
from gateway.kernel.journal.records.topology import QueueRecord, VhostRecord
from gateway.plugins.registry import load_plugins
from gateway.testing import MemoryBroker
from gateway_lmdb import LmdbStore

TURN: Final = 1000
REPETITIONS: Final = 3
BODY_BYTES: Final = 100
NOW_MS: Final = 1_700_000_000_000


class OneByOne(LmdbStore):
    """A store that recovers without runs."""

    def recover_runs(self) -> Iterator[Recovered]:
        return self.recover()


def fill(path: Path, messages: int, queues: int) -> None:
    """Write a store with so many messages in so many queues, in turn."""
    kernel = Kernel(path)
    topology: list[Change] = [Put(VhostRecord("/", "", [], "", False, {}, {}))]
    topology += [Put(QueueRecord("/", f"q{number}", number, False, {})) for number in range(1, queues + 1)]
    kernel.append(topology)
    for first in range(1, messages + 1, TURN):
        places = range(first, min(first + TURN, messages + 1))
        step: list[Change] = [Enqueued(at % queues + 1, at, at, NOW_MS, 0, BODY_BYTES) for at in places]
        last = kernel.append(step)
        kernel.wait_for(last)
    kernel.store.close()


def recovery_s(kind: type[LmdbStore], path: Path, messages: int) -> float:
    """Return the CPU seconds of one recovery, of all threads."""
    calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
    store = kind(path, call_in_kernel=calls.put)
    registry = load_plugins()
    gc.collect()
    begin_s = time.process_time()
    broker = MemoryBroker(store, registry=registry)  # type: ignore[arg-type]  # any store will do
    took_s = time.process_time() - begin_s
    found = sum(len(queue) for queue in broker.vhost.queue_by_name.values())
    assert found == messages, f"{found} of {messages} messages were restored"
    store.close()
    return took_s


def measure(messages: int, queues: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "data"
        fill(path, messages, queues)
        best = {OneByOne: float("inf"), LmdbStore: float("inf")}
        for _ in range(REPETITIONS):
            for kind in best:
                best[kind] = min(best[kind], recovery_s(kind, path, messages))
    single, runs = (took_s / messages * 1e6 for took_s in best.values())
    print(
        f"{messages:,} messages in {queues:3} queues: one by one {single:.2f}, in runs {runs:.2f}, {runs / single:.2f}"
    )


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for spread in (1, 100):
        measure(count, spread)
