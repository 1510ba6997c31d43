"""The cost of the LMDB store per message, from append to durable and through the drain.

    python benchmarks/micro/store.py [messages]

The changes are created while they are appended; the first lines show the cost of that alone, to be subtracted. Each
line: wall and CPU microseconds per message (all threads), and the resident memory afterwards. ``append`` is the
part spent on the kernel's thread. A turn appends a hundred messages, as a busy connection would.
"""

import gc
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from gateway.kernel.journal.changes import Change, Dequeued, Discarded, Enqueued, Lsn, Put, SetAside, Stored
from gateway.kernel.journal.records.topology import QueueRecord
from gateway.kernel.messages.message import Header, Message, Properties
from gateway_lmdb import LmdbStore

TURN = 100
TURNS_BEHIND = 50


class Format:
    name = "amqp-0-9-1"

    def header(self, raw: bytes) -> Header:
        return Header(self, raw)

    def properties(self, raw: bytes) -> Properties:
        return Properties()


class Kernel:
    """Waits for the store on this thread, as the reactor would."""

    def __init__(self, path: Path) -> None:
        self.calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.watermark = Lsn(0)
        self.append_s = 0.0
        self.store = LmdbStore(path, call_in_kernel=self.calls.put)
        self.store.listen(self)

    def append(self, changes: list[Change]) -> Lsn:
        start = time.perf_counter()
        lsn = self.store.append(changes)
        self.append_s += time.perf_counter() - start
        return lsn

    def wait_for(self, lsn: int) -> None:
        while self.watermark < lsn:
            self.calls.get()()

    def on_durable(self, watermark: Lsn) -> None:
        self.watermark = watermark

    def on_refused(self, reason: str) -> None:
        print("refused:", reason)

    def on_set_aside(self, aside: SetAside) -> None:
        print("set aside:", aside)

    def on_stalled(self, reason: str) -> None:
        print("stalled:", reason)

    def on_resumed(self) -> None:
        print("resumed")

    def on_failed(self, reason: str) -> None:
        sys.exit(f"failed: {reason}")


@dataclass
class Measured:
    name: str
    messages: int

    def __enter__(self) -> "Measured":
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        wall = (time.perf_counter() - self.wall) / self.messages * 1e6
        cpu = (time.process_time() - self.cpu) / self.messages * 1e6
        print(f"  {self.name:<36} {wall:7.2f} us wall {cpu:7.2f} us CPU   RSS {resident_mib():4.0f} MiB")


def resident_mib() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def publishing(first: int, last: int, body: bytes) -> Iterator[list[Change]]:
    header = Format().header(b"\x10\x00\x02")
    for start in range(first, last + 1, TURN):
        changes: list[Change] = []
        for number in range(start, min(start + TURN, last + 1)):
            message = Message("exchange", "routing.key", header, bytes(body))
            message.id = number
            changes += Stored(message), Enqueued(1, number, number, 1_700_000_000_000)
        yield changes


def draining(first: int, last: int) -> Iterator[list[Change]]:
    for start in range(first, last + 1, TURN):
        changes: list[Change] = []
        for number in range(start, min(start + TURN, last + 1)):
            changes += Dequeued(number), Discarded(number)
        yield changes


def run(kernel: Kernel, turns: Iterator[list[Change]], behind: int) -> None:
    """Append every turn, at most ``behind`` turns ahead of the disk."""
    lsn = 0
    for changes in turns:
        lsn = kernel.append(changes)
        kernel.wait_for(lsn - behind)
    kernel.wait_for(lsn)


def measure(size: int, messages: int) -> None:
    body = b"x" * size
    behind = TURNS_BEHIND
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-store-") as directory:
        data = Path(directory) / "data.mdb"
        kernel = Kernel(Path(directory))
        kernel.append([Put(QueueRecord("/", "q", 1, False, {}))])
        print(f"{messages} messages of {size} bytes, {TURN} a turn")
        with Measured("creating the changes to publish", messages):
            for _ in publishing(1, messages, body):
                pass
        with Measured("creating the changes to drain", messages):
            for _ in draining(1, messages):
                pass
        with Measured("append to durable", messages):
            run(kernel, publishing(1, messages, body), behind)
        print(f"  {'of which on the kernel thread':<36} {kernel.append_s / messages * 1e6:7.2f} us")
        print(f"  {'file':<36} {data.stat().st_size / messages:7.0f} bytes per message")
        kernel.store.close()

        kernel = Kernel(Path(directory))
        with Measured("recover", messages):
            found = sum(1 for _ in kernel.store.recover())
        assert found == messages + 1
        with Measured("read contents, 100 at a time", messages):
            for start in range(1, messages + 1, TURN):
                kernel.store.messages(range(start, min(start + TURN, messages + 1)))
        with Measured("drain to durable", messages):
            run(kernel, draining(1, messages), behind)
        grown = data.stat().st_size
        with Measured("publish again, into freed pages", messages):
            run(kernel, publishing(messages + 1, 2 * messages, body), behind)
        print(f"  {'file grew by':<36} {(data.stat().st_size - grown) / messages:7.0f} bytes per message")
        with Measured("purge, one append", messages):
            purge = [change for turn in draining(messages + 1, 2 * messages) for change in turn]
            kernel.wait_for(kernel.append(purge))
        with Measured("publish and settle, elided", messages):
            turns = zip(
                publishing(2 * messages + 1, 3 * messages, body),
                draining(2 * messages + 1, 3 * messages),
                strict=True,
            )
            run(kernel, (published + drained for published, drained in turns), behind)
        kernel.store.close()


def measure_latency(rounds: int = 300) -> None:
    with tempfile.TemporaryDirectory(dir=".", prefix=".bench-store-") as directory:
        kernel = Kernel(Path(directory))
        times = []
        for changes in publishing(1, rounds * TURN, b"x" * 100):
            start = time.perf_counter()
            kernel.wait_for(kernel.append(changes[:2]))
            times.append(time.perf_counter() - start)
        kernel.store.close()
    times.sort()
    print(f"one message at a time: p50 {times[rounds // 2] * 1e3:.2f} ms, p95 {times[rounds * 95 // 100] * 1e3:.2f} ms")


if __name__ == "__main__":
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)  # as the broker sets it
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    measure_latency()
    for message_size in (100, 1024):
        measure(message_size, count)
