"""The cost of scrapes in throughput: ``python -m benchmarks.load.scrape_cost``.

The broker has 1,000 queues and 1,000 idle connections. A publisher and a consumer exchange messages as fast as the
broker takes them, in windows of one second: in pairs, of which one has a scrape and the other has none, in an order
that alternates. Each pair has a ratio of throughput, and the median of many such ratios counts: what else runs on the
machine changes slowly, so it affects both windows of a pair, and a window that it spoils is one of many.

Throughput is messages for a second of the broker's CPU time, which is what a busy broker can do, and beside it messages
for a second of wall time. A scrape each second is much more than Prometheus makes; the costs of one each 5 and each
15 seconds are a fifth and a fifteenth of it.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

from benchmarks.load.amqp import wire
from benchmarks.load.amqp.client import Client, connected
from benchmarks.load.gateway import PROMETHEUS, launch_scraped
from benchmarks.load.idle import raise_descriptor_limit
from benchmarks.load.processes import cpu_seconds
from benchmarks.load.workloads import AMQP

QUEUES: Final = 1_000
CONNECTIONS: Final = 1_000
WINDOW_S: Final = 1.0
BODY: Final = bytes(100)
QUEUE: Final = "scraped.0"
#: Messages sent at once, and the most that are under way.
BATCH: Final = 50
WINDOW: Final = 500
#: The times between scrapes for which a row is printed, in windows: the first is measured.
INTERVALS: Final = (1, 5, 15)
#: The most that scrapes may cost, and the interval for which it is required.
REQUIRED_PERCENT: Final = 3.0
REQUIRED_INTERVAL: Final = 5


@dataclass(frozen=True, slots=True)
class Window:
    """The messages and the times of the broker in one window."""

    messages: int
    cpu_s: float
    wall_s: float


@dataclass(frozen=True, slots=True)
class Pair:
    """Two windows one after the other, of which one has a scrape."""

    scraped: Window
    quiet: Window

    @property
    def cpu_ratio(self) -> float:
        """Messages for a second of CPU time with a scrape, relative to those without one."""
        return (self.scraped.messages / self.scraped.cpu_s) / (self.quiet.messages / self.quiet.cpu_s)

    @property
    def wall_ratio(self) -> float:
        """Messages for a second of wall time with a scrape, relative to those without one."""
        return (self.scraped.messages / self.scraped.wall_s) / (self.quiet.messages / self.quiet.wall_s)


def main() -> int:
    """Measure, and print a row for each interval; return 1 if scrapes cost more than they may."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load.scrape_cost", description=__doc__)
    parser.add_argument("--pairs", type=int, default=60, help="pairs of windows (default: %(default)s)")
    pairs = measure(parser.parse_args().pairs)
    print("| A scrape each | Throughput for CPU time | Quartiles | For wall time | Quartiles |\n|---|---|---|---|---|")
    for interval in INTERVALS:
        by_cpu = [_spread(pair.cpu_ratio, interval) for pair in pairs]
        by_wall = [_spread(pair.wall_ratio, interval) for pair in pairs]
        print(f"| {interval * WINDOW_S:g} s | {_shown(by_cpu)} | {_shown(by_wall)} |")
    cost = 1 - statistics.median(_spread(pair.cpu_ratio, REQUIRED_INTERVAL) for pair in pairs)
    return int(cost * 100 > REQUIRED_PERCENT)


def measure(count: int) -> list[Pair]:
    """Return this many pairs of windows of one broker."""
    raise_descriptor_limit()
    with tempfile.TemporaryDirectory() as directory, launch_scraped(Path(directory)) as broker, ExitStack() as stack:
        for _ in range(CONNECTIONS):
            stack.enter_context(connected(broker.ports[AMQP]))
        control = stack.enter_context(connected(broker.ports[AMQP]))
        control.declare_queues([f"scraped.{number}" for number in range(QUEUES)])
        traffic = stack.enter_context(_traffic(broker.ports[AMQP]))
        time.sleep(2)
        pairs = []
        for number in range(count):
            windows = {
                scrapes: _window(broker.pid, traffic, broker.ports[PROMETHEUS], scrapes)
                for scrapes in ((True, False) if number % 2 else (False, True))
            }
            pairs.append(Pair(windows[True], windows[False]))
        return pairs


def _spread(ratio: float, interval: int) -> float:
    """Return the ratio that a scrape in each window has if there is one in so many windows."""
    return 1 - (1 - ratio) / interval


def _shown(ratios: Sequence[float]) -> str:
    """Return the median and the quartiles."""
    first, median, third = statistics.quantiles(ratios, n=4)
    return f"{median:.4f} | {first:.4f} to {third:.4f}"


class Traffic:
    """One publisher and one consumer; ``delivered`` counts."""

    def __init__(self, publisher: Client, consumer: Client) -> None:
        self._publisher = publisher
        self._consumer = consumer
        self._room = threading.Semaphore(WINDOW // BATCH)
        self.delivered = 0
        self.is_over = False

    def publish(self) -> None:
        """Publish batches until it is over."""
        batch = wire.publish("", QUEUE, BODY, persistent=False) * BATCH
        while not self.is_over:
            if self._room.acquire(timeout=1):
                self._publisher.socket.sendall(batch)

    def receive(self) -> None:
        """Receive until it is over."""
        while not self.is_over:
            self._consumer.read_arrival()
            self.delivered += 1
            if self.delivered % BATCH == 0:
                self._room.release()


@contextmanager
def _traffic(port: int) -> Iterator[Traffic]:
    with connected(port) as publisher, connected(port) as consumer:
        publisher.declare_queue(QUEUE, durable=True)
        consumer.consume(QUEUE, no_ack=True)
        traffic = Traffic(publisher, consumer)
        for work in (traffic.publish, traffic.receive):
            threading.Thread(target=work, daemon=True).start()
        yield traffic
        traffic.is_over = True
        time.sleep(1)


def _window(pid: int, traffic: Traffic, port: int, scrapes: bool) -> Window:
    """Let a window pass, with a scrape or without one."""
    began_s, cpu_s, delivered = time.monotonic(), cpu_seconds(pid), traffic.delivered
    if scrapes:
        _scrape(port)
    time.sleep(max(0.0, began_s + WINDOW_S - time.monotonic()))
    messages = traffic.delivered - delivered
    return Window(messages, cpu_seconds(pid) - cpu_s, time.monotonic() - began_s)


def _scrape(port: int) -> None:
    """Ask as Prometheus does."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        headers = {"Accept": "application/openmetrics-text;version=1.0.0", "Accept-Encoding": "gzip"}
        connection.request("GET", "/metrics", headers=headers)
        response = connection.getresponse()
        if response.status != 200 or len(response.read()) < 1000:
            raise RuntimeError(f"the scrape failed: {response.status}")
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
