"""The backlog of two checkouts: ``python -m benchmarks.load.amqp.backlog_versions --before DIR --after DIR``.

A backlog is filled once by the first checkout, and stopped. Then both drain a copy of its data in turns. The CPU time
is that of the whole process, and of the first thread alone: the other one that works is the store's writer.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.load.amqp.client import connected
from benchmarks.load.amqp.filling import fill
from benchmarks.load.backlog import BODY_BYTES, QUEUE, drain_all, first_delivery
from benchmarks.load.host import describe
from benchmarks.load.processes import cpu_seconds, main_thread_cpu_seconds
from benchmarks.load.tables import table
from benchmarks.load.versions import AFTER, BEFORE, Checkout
from benchmarks.load.workloads import AMQP

#: The time after a drain in which the writer's thread ends its work, in seconds.
_SETTLING_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Drain:
    """CPU time in microseconds a message, of the process and of its first thread; messages per second."""

    cpu_us: float
    first_thread_us: float
    rate: float


def fill_once(checkout: Checkout, directory: Path, messages: int) -> float:
    """Fill a backlog into a directory; return the CPU time in microseconds a message."""
    directory.mkdir()
    with checkout.peer.launch(directory) as broker, connected(broker.ports[AMQP]) as control:
        control.declare_queue(QUEUE, durable=True)
        before_s = cpu_seconds(broker.pid)
        fill(broker.ports[AMQP], QUEUE, messages, BODY_BYTES)
        return (cpu_seconds(broker.pid) - before_s) / messages * 1e6


def drain_copy(checkout: Checkout, filled: Path, copy: Path, messages: int, ack_every: int) -> Drain:
    """Drain a copy of a filled directory, and remove the copy."""
    shutil.copytree(filled, copy, copy_function=_copy_synced)
    try:
        with checkout.peer.launch(copy) as broker:
            delivery_bytes = first_delivery(broker.ports[AMQP])
            before_s, first_before_s = cpu_seconds(broker.pid), main_thread_cpu_seconds(broker.pid)
            rate = drain_all(broker.ports[AMQP], messages, delivery_bytes, ack_every)
            time.sleep(_SETTLING_S)
            used_s, first_s = cpu_seconds(broker.pid) - before_s, main_thread_cpu_seconds(broker.pid) - first_before_s
        return Drain(used_s / messages * 1e6, first_s / messages * 1e6, rate)
    finally:
        shutil.rmtree(copy)


def _copy_synced(source: str, target: str) -> str:
    """Copy a file; the broker would pay for writing what the copy left in memory, with its first sync."""
    shutil.copy2(source, target)
    descriptor = os.open(target, os.O_RDWR)
    os.fsync(descriptor)
    os.close(descriptor)
    return target


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both checkouts in turns, and print a table."""
    options = _options().parse_args(arguments)
    checkouts = [Checkout(BEFORE, options.before), Checkout(AFTER, options.after)]
    drains: dict[str, list[Drain]] = {checkout.name: [] for checkout in checkouts}
    with tempfile.TemporaryDirectory(dir=options.directory) as temporary:
        filled = Path(temporary, "filled")
        fill_us = fill_once(checkouts[0], filled, options.messages)
        print(f"filled by {BEFORE}: {fill_us:.2f} µs", flush=True)
        for _ in range(options.repetitions):
            for checkout in checkouts:
                drain = drain_copy(checkout, filled, Path(temporary, "copy"), options.messages, options.ack_every)
                drains[checkout.name].append(drain)
                print(f"{checkout.name}: {drain.cpu_us:.2f} µs, {drain.rate:,.0f} msg/s", flush=True)
    print(
        f"\nMachine: {describe(options.directory)}. {options.messages:,} messages of {BODY_BYTES} B, µs of CPU each.\n"
    )
    head = ("", "least", "median", "first thread, median", "msg/s, most")
    print("\n".join(table([head, *(_row(name, measured) for name, measured in drains.items())])))
    return 0


def _row(name: str, measured: Sequence[Drain]) -> Sequence[str]:
    cpu = [drain.cpu_us for drain in measured]
    return (
        f"drained, {name}",
        f"{min(cpu):.2f}",
        f"{median(cpu):.2f}",
        f"{median(drain.first_thread_us for drain in measured):.2f}",
        f"{max(drain.rate for drain in measured):,.0f}",
    )


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.load.amqp.backlog_versions",
        description="Two checkouts drain the same backlog in turns.",
    )
    parser.add_argument("--before", type=Path, required=True, metavar="DIR", help="the checkout to compare with")
    parser.add_argument("--after", type=Path, required=True, metavar="DIR", help="the checkout in question")
    parser.add_argument(
        "--messages", type=int, default=300_000, help="the length of the backlog (default: %(default)s)"
    )
    parser.add_argument("--ack-every", type=int, default=100, help="deliveries to an acknowledgement, 0 for none")
    parser.add_argument("--repetitions", type=int, default=5, help="drains of each checkout (default: %(default)s)")
    parser.add_argument(
        "--directory", type=Path, default=Path(tempfile.gettempdir()), help="data directory of the brokers"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
