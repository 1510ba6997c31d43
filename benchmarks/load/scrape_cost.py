"""The cost of scrapes for the messages of a broker: ``python -m benchmarks.load.scrape_cost``.

The broker has 1,000 queues and 1,000 idle connections. A publisher and a consumer exchange messages as fast as the
broker takes them, in windows of fifteen seconds that alternate: without scrapes, with one, and with three, which is a
scrape each fifteen and each five seconds. What is compared is the broker's CPU time for a message, because other
programs on the machine change the number of messages in a second.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
WINDOW_S: Final = 15.0
BODY: Final = bytes(100)
QUEUE: Final = "scraped.0"
#: Messages sent at once, and the most that are under way.
BATCH: Final = 50
WINDOW: Final = 500
#: Scrapes in a window, by the name of the mode.
MODES: Final = {"none": 0, "each 15 s": 1, "each 5 s": 3}
REQUIRED_PERCENT: Final = 3.0


def main() -> int:
    """Measure, and print a row for each mode; return 1 if a mode costs more than it may."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.load.scrape_cost", description=__doc__)
    parser.add_argument("--rounds", type=int, default=6, help="windows of each mode (default: %(default)s)")
    rounds = parser.parse_args().rounds
    raise_descriptor_limit()
    costs: dict[str, list[float]] = {mode: [] for mode in MODES}
    rates: dict[str, list[float]] = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory() as directory, launch_scraped(Path(directory)) as broker, ExitStack() as stack:
        for _ in range(CONNECTIONS):
            stack.enter_context(connected(broker.ports[AMQP]))
        control = stack.enter_context(connected(broker.ports[AMQP]))
        control.declare_queues([f"scraped.{number}" for number in range(QUEUES)])
        traffic = stack.enter_context(_traffic(broker.ports[AMQP]))
        time.sleep(2)
        for _ in range(rounds):
            for mode, scrapes in MODES.items():
                cost, rate = _window(broker.pid, traffic, broker.ports[PROMETHEUS], scrapes)
                costs[mode].append(cost)
                rates[mode].append(rate)
    base = statistics.median(costs["none"])
    print("| Scrapes | CPU for a message, µs | Cost | Messages in a second |\n|---|---|---|---|")
    late = 0
    for mode, found in costs.items():
        percent = (statistics.median(found) / base - 1) * 100
        late |= percent > REQUIRED_PERCENT
        print(f"| {mode} | {statistics.median(found):.2f} | {percent:+.1f} % | {statistics.median(rates[mode]):,.0f} |")
    return int(late)


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


def _window(pid: int, traffic: Traffic, port: int, scrapes: int) -> tuple[float, float]:
    """Return the CPU for a message in microseconds, and the messages in a second."""
    began_s, cpu_s, delivered = time.monotonic(), cpu_seconds(pid), traffic.delivered
    for number in range(scrapes):
        due_s = began_s + WINDOW_S * (number + 0.5) / scrapes
        time.sleep(max(0.0, due_s - time.monotonic()))
        _scrape(port)
    time.sleep(max(0.0, began_s + WINDOW_S - time.monotonic()))
    messages = traffic.delivered - delivered
    return (cpu_seconds(pid) - cpu_s) / messages * 1e6, messages / (time.monotonic() - began_s)


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
